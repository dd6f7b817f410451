"""Kernels that are texts in a candidate: compiled to a shared library, called through the C ABI."""

from __future__ import annotations

import ast
from pathlib import Path

from kernel_smith.evaluation.backends.base import Route
from kernel_smith.inline.dialects import EXTENSION
from kernel_smith.inline.elf import imported_symbols, neutralise, unresolved_symbols
from kernel_smith.inline.extension_calls import find_extensions
from kernel_smith.inline.literals import Literal, find_sources

# Loading other code, starting processes, administering this one: none of it is computing. Not here:
# `syscall`, which C++20's barriers and waiting atomics call; the sandbox filters system calls.
_FORBIDDEN = frozenset(
    {"dlopen", "dlmopen", "dlsym", "dlvsym", "dladdr", "dl_iterate_phdr"}
    | {"fork", "vfork", "_Fork", "clone", "posix_spawn", "posix_spawnp", "system", "popen"}
    | {"execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve"}
    | {"ptrace", "process_vm_readv", "process_vm_writev", "kill", "tgkill"}
    | {"socket", "connect", "mprotect", "pkey_mprotect", "memfd_create", "shm_open"}
    | {"sched_setaffinity", "pthread_setaffinity_np", "setpriority", "nice"}
    | {"setrlimit", "prlimit", "prctl", "personality"}
    | {"cudaGetDriverEntryPoint", "cudaGetDriverEntryPointByVersion"}
)
# What extensions could do the same with: PyTorch's loader of libraries, and Python's of code.
_FORBIDDEN_IN_OTHERS = (
    *("_ZN2at14DynamicLibrary", "_ZNK2at14DynamicLibrary"),
    *("PyRun_", "PyImport_", "Py_CompileString", "PyEval_EvalCode", "PyOS_"),
)


class CompiledBackend:
    """A dialect of `kernel_smith.inline`. Launches are made by host functions, so a library whose
    host functions return at once launches nothing."""

    name: str
    gpu = True
    in_process = False

    def route(self, *, on_device: bool) -> Route:
        return "native" if on_device else "cpu"

    def sources(self, tree: ast.Module) -> list[Literal]:
        found = [*find_sources(tree), *find_extensions(tree)]
        own = (self.name, self.name + EXTENSION)
        return [literal for literal in found if literal.dialect in own]

    def forbidden_symbols(self, compiled: Path) -> list[str]:
        imported = {name.split("@")[0] for name in imported_symbols(compiled)}
        by_others = {name for name in imported if name.startswith(_FORBIDDEN_IN_OTHERS)}
        return sorted((_FORBIDDEN & imported) | by_others | unresolved_symbols(compiled))

    def disarm(self, compiled: Path, target: Path) -> None:
        neutralise(compiled, target)
