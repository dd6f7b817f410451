"""`kernel-smith doctor`: what is here, what is missing, and how to get it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any, Literal

import pytest

from kernel_smith.evaluation.sandbox.confine import devices
from kernel_smith.evaluation.sandbox.confine.devices import Gpus

Cli = Callable[..., Any]

BESIDE_A_GPU = {"torch for the GPU", "launchers of kernels", "clocks and power of the GPU", "ncu"}


def checks(cli: Cli) -> dict[str, dict[str, str]]:
    """By name; of several with one name, the last."""
    return {check["name"]: check for check in cli("doctor", "--json").json["checks"]}


@pytest.fixture
def a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Gpus(names=("NVIDIA H200", "NVIDIA H200"), driver="580.1")
    monkeypatch.setattr(devices, "gpus", lambda: found)


def test_doctor_lists_what_this_machine_can_do(cli: Cli) -> None:
    done = cli("doctor")
    assert done.code == 0
    for expected in ("python", "torch", "C++ compiler", "cores", "confinement", "cache"):
        assert expected in done.out
    checks = cli("doctor", "--json").json["checks"]
    assert {"name", "state", "found", "remedy"} == set(checks[0])
    assert {check["state"] for check in checks} <= {"ok", "degraded", "missing"}


def test_doctor_misses_a_compiler(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nonexistent/c++")
    done = cli("doctor")
    assert done.code == 3
    assert "missing" in done.out
    assert "/nonexistent/c++" in done.out
    assert "hint: unset CXX" in done.out
    broken = cli("doctor", "--json")
    assert broken.code == 3
    (compiler,) = [c for c in broken.json["checks"] if c["name"] == "C++ compiler"]
    assert compiler["state"] == "missing"
    assert compiler["remedy"]


def test_doctor_misses_a_cache_that_can_be_written(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KERNEL_SMITH_CACHE", str(tmp_path / "file" / "cache"))
    done = cli("doctor")
    assert done.code == 3
    assert "KERNEL_SMITH_CACHE" in done.out


def test_a_machine_without_a_gpu_lacks_nothing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "gpus", lambda: Gpus(names=(), driver=None))
    found = checks(cli)
    assert found["NVIDIA GPU"]["state"] == "ok"
    assert "interpreted" in found["NVIDIA GPU"]["found"]
    assert not BESIDE_A_GPU & found.keys()


def test_a_driver_without_device_files_has_a_remedy(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "gpus", lambda: Gpus(names=(), driver="580.1"))
    found = checks(cli)["NVIDIA GPU"]
    assert found["state"] == "degraded"
    assert "580.1" in found["found"]
    assert "docker run --gpus all" in found["remedy"]


def test_a_gpu_is_named_with_what_is_needed_beside_it(cli: Cli, a_gpu: None) -> None:
    found = checks(cli)
    assert found["NVIDIA GPU"]["found"] == "NVIDIA H200, NVIDIA H200; driver 580.1"
    assert found.keys() >= BESIDE_A_GPU


@pytest.mark.parametrize(
    ("text", "state", "words"),
    [
        ("__all__ = ['cuda']\ncuda: Optional[str] = '13.0'\n", "ok", "CUDA 13.0"),
        ("__all__ = ['cuda']\ncuda: Optional[str] = None\n", "degraded", "without CUDA"),
        ("cuda = '12.8'\n", "ok", "CUDA 12.8"),
    ],
)
def test_torch_is_asked_for_its_cuda_without_importing_it(
    cli: Cli,
    a_gpu: None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    text: str,
    state: str,
    words: str,
) -> None:
    install_torch(text, tmp_path, monkeypatch)
    found = checks(cli)["torch for the GPU"]
    assert found["state"] == state
    assert words in found["found"]
    assert bool(found["remedy"]) is (state != "ok")


def install_torch(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that says no more than its version."""
    package = tmp_path / "site" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "version.py").write_text(version)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.syspath_prepend(str(package.parent))


@pytest.mark.parametrize(
    ("vendor", "text", "state", "words"),
    [
        ("MetaX", "__version__ = '2.8.0+metax3.5.3.9'\n", "ok", "MACA 3.5.3.9"),
        ("MetaX", "cuda = '11.6'\nmaca: Optional[str] = '3.3'\n", "ok", "MACA 3.3"),
        ("MetaX", "__version__ = '2.8.0+cu128'\ncuda = '12.8'\n", "degraded", "without MACA"),
        ("AMD", "cuda = None\nhip: Optional[str] = '6.4.43483-a187df25c'\n", "ok", "HIP 6.4.43483"),
        ("AMD", "cuda = '12.8'\nhip: Optional[str] = None\n", "degraded", "without HIP"),
    ],
)
def test_gpus_of_others_are_named_with_the_torch_that_they_need(
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    vendor: Literal["MetaX", "AMD"],
    text: str,
    state: str,
    words: str,
) -> None:
    found = Gpus(("one", "another"), None, vendor)
    monkeypatch.setattr(devices, "gpus", lambda: found)
    install_torch(text, tmp_path, monkeypatch)
    told = checks(cli)
    assert told[f"{vendor} GPU"]["found"] == "one, another"
    assert told["torch for the GPU"]["state"] == state
    assert words in told["torch for the GPU"]["found"]
    assert "NVIDIA GPU" not in told
    assert ("mcTracer" in told) is (vendor == "MetaX")


def test_launchers_need_the_headers_of_python(
    cli: Cli, a_gpu: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sysconfig.get_paths", lambda: {"include": str(tmp_path)})
    found = checks(cli)["launchers of kernels"]
    assert found["state"] == "degraded"
    assert "Python.h" in found["found"]
    assert "python3-dev" in found["remedy"]
    (tmp_path / "Python.h").write_text("")
    assert checks(cli)["launchers of kernels"]["state"] == "ok"


def test_clocks_need_a_package(cli: Cli, a_gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "nvidia-ml-py":
            raise PackageNotFoundError(name)
        return installed_version(name)

    monkeypatch.setattr("importlib.metadata.version", version)
    found = checks(cli)["clocks and power of the GPU"]
    assert found["state"] == "degraded"
    assert found["remedy"] == "pip install 'kernel-smith[cuda]'"


@pytest.mark.parametrize("path", ["/opt/nvidia/ncu", None])
def test_a_profiler_that_is_not_there_is_not_missed(
    cli: Cli, a_gpu: None, monkeypatch: pytest.MonkeyPatch, path: str | None
) -> None:
    real = shutil.which

    def which(name: str, **manner: Any) -> str | None:
        return path if name == "ncu" else real(name, **manner)

    monkeypatch.setattr("shutil.which", which)
    found = checks(cli)["ncu"]
    assert found["state"] == "ok"
    assert (path or "only `evaluate --ncu` needs it") in found["found"]
