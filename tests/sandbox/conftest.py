"""Running functions in confined processes, as root and as an ordinary user."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kernel_smith.evaluation.sandbox.confine import (
    Outcome,
    Policy,
    default_readable,
    kernel,
    modest_policy,
    run_confined,
)

READABLE = default_readable()
ORDINARY_ID = 54321
PR_SET_DUMPABLE = 4


@dataclass(frozen=True)
class Confined:
    """Runs functions in confined processes of one kind of user."""

    policy: Policy
    prepare: Callable[[], object]
    user: int

    def run(self, function: Callable[[], object], *needs: str, **changes: object) -> Outcome:
        """Run it, under the policy with `changes`; skip if the machine lacks a feature needed."""
        policy = replace(self.policy, **changes)  # type: ignore[arg-type]
        outcome = run_confined(function, policy, prepare=self.prepare)
        for feature in needs:
            if feature not in outcome.report.enforced:
                pytest.skip(f"this machine lacks: {feature}")
        return outcome

    def value(self, function: Callable[[], object], *needs: str, **changes: object) -> object:
        """What the function returned inside; it must not have failed."""
        outcome = self.run(function, *needs, **changes)
        assert outcome.error is None
        assert outcome.exit_code == 0
        return outcome.value


@pytest.fixture(params=["root", "ordinary user"])
def confined(request: pytest.FixtureRequest) -> Iterator[Confined]:
    """Every behaviour is shown for both kinds of user that may run an evaluator."""
    root = os.geteuid() == 0
    if request.param == "root" and not root:
        pytest.skip("needs root")
    become_other = root and request.param == "ordinary user"
    user = ORDINARY_ID if become_other else os.geteuid()
    folder = Path(tempfile.mkdtemp(prefix="kernel-smith-test-"))
    folder.chmod(0o755)
    scratch = folder / "scratch"
    scratch.mkdir()
    if become_other:
        os.chown(scratch, user, user)
    policy = replace(modest_policy(scratch), readable=READABLE)
    prepare = become_ordinary if become_other else lambda: None
    yield Confined(policy, prepare, user)
    shutil.rmtree(folder)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder outside the scratch folder that every user may write."""
    folder = Path(tempfile.mkdtemp(prefix="kernel-smith-open-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Simulate a kernel that lacks system calls, or only some uses of them."""
    real = kernel.call

    def install(*names: str, only: Callable[..., bool] = lambda *call: True) -> None:
        def call(name: str, *arguments: kernel.Argument) -> int:
            if name in names and only(name, *arguments):
                raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), name)
            return real(name, *arguments)

        monkeypatch.setattr(kernel, "call", call)

    return install


def become_ordinary() -> None:
    os.setgroups([])
    os.setresgid(ORDINARY_ID, ORDINARY_ID, ORDINARY_ID)
    os.setresuid(ORDINARY_ID, ORDINARY_ID, ORDINARY_ID)
    # Processes of ordinary users are dumpable, which those of a former root are not.
    kernel.prctl(PR_SET_DUMPABLE, 1)
