"""Modules that a kernel has no use for, however they are reached.

A module with harmless parts is judged by what is used of it: `threading.Lock` is fine,
`threading.Thread` is not. A module without any is refused where it is imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kernel_smith.evaluation.screen.code import Code, is_under
from kernel_smith.records import Finding, Reason


class Module(NamedTuple):
    use: str
    harmless: frozenset[str] = frozenset()
    reason: Reason = Reason.FORBIDDEN_IMPORT

    def allows(self, rest: str) -> bool:
        """Whether a dotted name inside the module, or the bare module, may be used."""
        return any(
            not rest or is_under(rest, name) or is_under(name, rest) for name in self.harmless
        )


def _group(use: str, *names: str) -> dict[str, Module]:
    return dict.fromkeys(names, Module(use))


MODULES: dict[str, Module] = {
    **_group("calls foreign code", "ctypes", "_ctypes", "cffi", "numpy.ctypeslib"),
    **_group("starts processes", "subprocess", "pty", "torch.multiprocessing"),
    **_group("reaches the network", "socket", "_socket", "socketserver", "ssl", "http", "urllib"),
    **_group("reaches the network", "requests", "httpx", "aiohttp", "ftplib", "smtplib", "xmlrpc"),
    **_group("runs work in the background", "_thread", "concurrent", "asyncio"),
    **_group("changes or runs other code", "builtins", "runpy", "code", "codeop", "unittest.mock"),
    **_group("runs code hidden in data", "pickle", "_pickle", "marshal", "shelve", "dill"),
    **_group("runs code hidden in data", "cloudpickle"),
    **_group("changes the process", "signal", "resource", "fcntl", "mmap", "faulthandler"),
    **_group("watches the measurement", "torch.utils.benchmark", "bdb", "pdb"),
    "torch.profiler": Module("watches the measurement", frozenset({"record_function"})),
    "torch.autograd.profiler": Module("watches the measurement", frozenset({"record_function"})),
    "multiprocessing": Module("starts processes", frozenset({"cpu_count"})),
    "threading": Module(
        "runs work in the background", frozenset({"Lock", "RLock", "local", "get_ident"})
    ),
    "importlib": Module("loads code by name", frozenset({"util.find_spec", "metadata.version"})),
    "shutil": Module("works on files", frozenset({"which"})),
    "tempfile": Module("works on files", frozenset({"gettempdir", "mkdtemp"})),
    "gc": Module(
        "looks through the interpreter's objects",
        frozenset({"collect", "enable", "disable", "isenabled"}),
        Reason.STACK_INSPECTION,
    ),
    "inspect": Module(
        "looks at code and callers",
        frozenset({"cleandoc", "signature", "Parameter", "getdoc", "isclass", "isfunction"}),
        Reason.STACK_INSPECTION,
    ),
    "os": Module(
        "reaches processes and files",
        frozenset(
            {
                *("cpu_count", "process_cpu_count", "sched_getaffinity", "environ", "getenv"),
                *("name", "path", "sep", "pathsep", "linesep", "curdir", "fspath", "PathLike"),
                *("uname", "getcwd", "getpid", "makedirs"),
            }
        ),
        Reason.FORBIDDEN_CALL,
    ),
    "kernel_smith": Module("belongs to the judge", frozenset({"inline"})),
}


def forbidden_modules(code: Code) -> Iterator[Finding]:
    reported: set[str] = set()
    for reference in code.references:
        found = forbidden_module(reference.origin)
        if found is None or (found == "builtins" and not reference.is_import):
            continue  # every file uses builtins; only importing them is odd
        module = MODULES[found]
        # One finding per module without harmless parts, one per use of the others.
        subject = reference.origin if module.harmless else found
        if subject not in reported:
            reported.add(subject)
            verb = "imports" if reference.is_import else "uses"
            yield code.finding(
                module.reason,
                reference.node,
                f"{verb} `{subject}`, which {module.use}; a kernel has no use for it",
            )


def forbidden_module(origin: str) -> str | None:
    """The module of the list above that a dotted name makes a forbidden use of."""
    parts = origin.split(".")
    for length in range(1, len(parts) + 1):
        name = ".".join(parts[:length])
        if name in MODULES and not MODULES[name].allows(".".join(parts[length:])):
            return name
    return None
