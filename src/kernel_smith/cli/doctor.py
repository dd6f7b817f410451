"""`kernel-smith doctor`: what this machine can do, what is missing, and how to get it."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import typer

from kernel_smith.cli.output import console, print_json, print_next, print_titled
from kernel_smith.errors import MissingPrerequisite

# What the checks need is imported in them: it would double the time that `--help` takes.
State = Literal["ok", "degraded", "missing"]
_MISSING_PREREQUISITE = 3
_CONFORMANCE = "conformance on an NVIDIA GPU with nvcc, or emulated on the CPU; nothing is timed"
_WITHOUT_COMPILER = {
    "cuda": "emulated on the CPU; nothing is timed",
    "maca": _CONFORMANCE,
    "hip": _CONFORMANCE,
}
# In torch's own version.py
_BUILT_FOR = {
    "CUDA": r"^cuda\b.*= '([\d.]+)'",
    "MACA": r"(?:^maca\b.*= '|\+metax)([\d.]+)",
    "HIP": r"^hip\b.*= '([\d.]+)",
}
_TORCH_FOR = {
    "CUDA": "install a torch that was built for CUDA: https://pytorch.org/get-started/locally",
    "MACA": "install MetaX's torch for MACA: https://developer.metax-tech.com",
    "HIP": "install a torch that was built for ROCm: https://pytorch.org/get-started/locally",
}


_COLOURS = {"ok": "green", "degraded": "yellow", "missing": "red"}


class Check(NamedTuple):
    name: str
    state: State
    found: str
    remedy: str = ""


def doctor(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Check this machine. Exits with 3 if something essential is missing."""
    checks = [result for check in _CHECKS for result in check()]
    if json:
        print_json({"checks": [check._asdict() for check in checks]})
    else:
        for check in checks:
            found = f" {check.name}: {check.found}"
            print_titled(f"{check.state:8}", _COLOURS[check.state], found, console)
            if check.remedy:
                console.print(f"          hint: {check.remedy}")
        print_next("kernel-smith tasks list", "what to evaluate")
    essential = any(check.state == "missing" for check in checks)
    raise typer.Exit(_MISSING_PREREQUISITE if essential else 0)


def _software() -> list[Check]:
    from importlib.metadata import PackageNotFoundError, version

    checks = [Check("python", "ok", platform.python_version())]
    try:
        checks.append(Check("torch", "ok", version("torch")))
    except PackageNotFoundError:
        checks.append(Check("torch", "missing", "not installed", "pip install torch"))
    try:
        found = f"{version('triton')}: candidates for GPUs, interpreted where there is none"
        checks.append(Check("triton", "ok", found))
    except PackageNotFoundError:
        remedy = "pip install 'kernel-smith[triton]'"
        checks.append(Check("triton", "degraded", "not installed: no Triton candidates", remedy))
    return checks


def _compiler() -> list[Check]:
    from kernel_smith.inline.toolchain import find_toolchain

    try:
        return [Check("C++ compiler", "ok", find_toolchain("cpp").version)]
    except MissingPrerequisite as error:
        return [Check("C++ compiler", "missing", error.what, error.hint)]


def _gpu_dialects() -> list[Check]:
    """Which compilers for GPUs are there; without one, kernels are emulated on the CPU."""
    from kernel_smith.inline.toolchain import find_toolchain

    checks = []
    for dialect, name in (("cuda", "CUDA"), ("maca", "MACA"), ("hip", "HIP")):
        try:
            found = find_toolchain(dialect)
        except MissingPrerequisite as error:
            what = f"no compiler: {_WITHOUT_COMPILER[dialect]}"
            checks.append(
                Check(f"{name} kernels", "ok", what, f"to compile natively: {error.hint}")
            )
        else:
            checks.append(Check(f"{name} kernels", "ok", f"{found.version}, for {found.arch}"))
    return checks


def _cores() -> list[Check]:
    count = len(os.sched_getaffinity(0))
    if count > 1:
        return [Check("cores", "ok", f"{count}: one for the judge, {count - 1} for timed work")]
    remedy = "timings will be noisy; give this process two cores or more"
    return [Check("cores", "degraded", "1: judge and timed work share it", remedy)]


def _confinement() -> list[Check]:
    from kernel_smith.evaluation.sandbox.confine import probe

    report = probe()
    checks = [Check("confinement", "ok", ", ".join(report.enforced) or "nothing enforced")]
    return checks + [
        Check("confinement", "degraded", line, "see SECURITY.md on what needs which kernel feature")
        for line in report.missing
    ]


def _sampling() -> list[Check]:
    from kernel_smith.evaluation.judge.evidence.perf_events import available

    reason = available()
    if reason is None:
        return [Check("time shares by module", "ok", "perf_event_open works")]
    return [Check("time shares by module", "degraded", reason)]


def _cache() -> list[Check]:
    from kernel_smith.inline.cache import cache_root

    root = cache_root()
    try:
        root.mkdir(parents=True, exist_ok=True)
        usable = os.access(root, os.W_OK)
    except OSError:
        usable = False
    if usable:
        return [Check("cache", "ok", str(root))]
    remedy = "set KERNEL_SMITH_CACHE to a folder that can be written"
    return [Check("cache", "missing", f"{root} cannot be written", remedy)]


def _accelerators() -> list[Check]:
    from kernel_smith.evaluation.sandbox.confine import devices

    found = devices.gpus()
    if found.names and found.vendor != "NVIDIA":
        return [Check(f"{found.vendor} GPU", "ok", ", ".join(found.names)), *_beside(found.vendor)]
    if found.names:
        what = f"{', '.join(found.names)}; driver {found.driver or 'of unknown version'}"
        return [Check("NVIDIA GPU", "ok", what), *_beside_a_gpu()]
    if found.driver:
        remedy = "hand the GPU to this container, e.g. docker run --gpus all"
        what = f"driver {found.driver}, but no device files: kernels for GPUs are interpreted"
        return [Check("NVIDIA GPU", "degraded", what, remedy)]
    return [
        Check(
            "NVIDIA GPU", "ok", "none: kernels for GPUs are interpreted or emulated, and not timed"
        )
    ]


def _beside_a_gpu() -> list[Check]:
    return [_torch_for_gpu("CUDA"), _launchers(), _telemetry(), _nsight()]


def _beside(vendor: Literal["MetaX", "AMD"]) -> list[Check]:
    if vendor == "AMD":
        return [_torch_for_gpu("HIP")]
    return [_torch_for_gpu("MACA"), _mctracer()]


def _torch_for_gpu(kind: Literal["CUDA", "MACA", "HIP"]) -> Check:
    """Read, not imported: that would take seconds."""
    from importlib.util import find_spec

    torch = find_spec("torch")
    version = ""
    if torch is not None and torch.origin is not None:
        version = Path(torch.origin).with_name("version.py").read_text()
    built_for = re.search(_BUILT_FOR[kind], version, re.MULTILINE)
    if built_for:
        return Check("torch for the GPU", "ok", f"built for {kind} {built_for[1]}")
    what = f"built without {kind}: no GPU is used"
    return Check("torch for the GPU", "degraded", what, _TORCH_FOR[kind])


def _launchers() -> Check:
    """Return what Triton needs on a GPU beside itself: a C compiler, and the headers of Python."""
    import sysconfig

    from kernel_smith.inline.toolchain import find_toolchain

    try:
        compiler = find_toolchain("cpp").version
    except MissingPrerequisite as error:
        return Check(
            "launchers of kernels", "degraded", f"cannot be built: {error.what}", error.hint
        )
    headers = Path(sysconfig.get_paths()["include"])
    if (headers / "Python.h").is_file():
        return Check("launchers of kernels", "ok", f"built by {compiler}")
    remedy = "install the headers of Python, e.g. apt-get install python3-dev"
    return Check("launchers of kernels", "degraded", f"no Python.h in {headers}", remedy)


def _telemetry() -> Check:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return Check("clocks and power of the GPU", "ok", f"nvidia-ml-py {version('nvidia-ml-py')}")
    except PackageNotFoundError:
        found = "not observed: nvidia-ml-py is not installed"
        remedy = "pip install 'kernel-smith[cuda]'"
        return Check("clocks and power of the GPU", "degraded", found, remedy)


def _nsight() -> Check:
    from kernel_smith.evaluation.nsight import find_ncu

    found = find_ncu()
    missing = "not found; only `evaluate --ncu` needs it"
    return Check("ncu", "ok", missing if found is None else str(found))


def _mctracer() -> Check:
    from kernel_smith.evaluation.mctracer import find_mctracer

    found = find_mctracer()
    missing = "not found; only `evaluate --mctracer` needs it"
    return Check("mcTracer", "ok", missing if found is None else str(found))


_CHECKS: tuple[Callable[[], list[Check]], ...] = (
    _software,
    _compiler,
    _cores,
    _confinement,
    _sampling,
    _cache,
    _accelerators,
    _gpu_dialects,
)
