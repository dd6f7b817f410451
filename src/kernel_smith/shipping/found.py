"""What a run found, and how it gets into the user's own program."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_smith.errors import BadInput
from kernel_smith.records import Candidate, Evaluation, Stage, Task

if TYPE_CHECKING:
    import torch

    from kernel_smith.records import Interval, Timing
    from kernel_smith.runs.state import RunState
    from kernel_smith.shipping.runtime.replacement import Replacement
    from kernel_smith.shipping.runtime.spec import Spec
    from kernel_smith.shipping.whole_model import ModelGain


@dataclass(frozen=True)
class Optimized:
    """What a run found."""

    run: str
    task: Task = field(repr=False)
    candidate: Candidate
    evaluation: Evaluation
    why_ended: str
    confirmed: bool
    """Was it shown to be faster than eager and torch.compile, by a measuring at full length that
    did not choose it?"""
    original: torch.nn.Module | None = field(default=None, compare=False)
    """The live module that was optimized, if it was one."""

    @classmethod
    def of(
        cls, state: RunState, why_ended: str, original: torch.nn.Module | None = None
    ) -> Optimized:
        """Return the best of a run that has one, with the figures that did not choose it if
        there are."""
        assert state.best is not None
        final = state.confirmation
        if final is None or final.stage is Stage.UNSTABLE:  # it is right, and was timed before
            final = state.best.evaluation
        return cls(
            run=state.run,
            task=state.task,
            candidate=state.best.candidate,
            evaluation=final,
            why_ended=why_ended,
            confirmed=state.is_confirmed,
            original=original,
        )

    @property
    def speedup(self) -> float:
        """Against eager PyTorch: the lower end of the interval."""
        return self._timed.speedup.low

    @property
    def source(self) -> str:
        """The text of the kernel."""
        return self.candidate.source

    def module(self, of: torch.nn.Module | None = None) -> torch.nn.Module:
        """Return a drop-in for the module that was optimized, or for another one of its kind.

        It shares the module's parameters and has its `state_dict`. A kernel that was shown to be
        slower is a warning. Calls of the verified sizes are
        answered by the kernel, all others by the module's own `forward`; `.counts` tells.
        """
        self._warn_if_slower()
        return self.replacement.module(self.original if of is None else of)

    def patch(self, model: torch.nn.Module, where: type | None = None) -> list[str]:
        """Let the kernel answer calls of all matching modules of a model, and name them."""
        self._warn_if_slower()
        return self.replacement.patch(model, where)

    def unpatch(self, model: torch.nn.Module) -> list[str]:
        """Take back what `patch` did, and name the modules."""
        return self.replacement.unpatch(model)

    def gain_in(
        self,
        model: torch.nn.Module,
        *arguments: Any,
        where: type | None = None,
        seconds: float = 10.0,
        **named: Any,
    ) -> ModelGain:
        """Return what the kernel is worth in a whole model that is called with these arguments.

        Measures `seconds` each way: as the model is called, and on a GPU also as a CUDA graph.
        """
        from kernel_smith.shipping.whole_model import ModelGauge

        gauge = ModelGauge(self.replacement, model, where, lambda: model(*arguments, **named))
        return gauge.measure(seconds)

    def save(self, path: str | Path) -> Path:
        """Write a folder that can be imported, and runs without kernel-smith."""
        from kernel_smith.shipping.folder import save

        weights = None if self.original is None else self.original.state_dict()
        return save(self._spec, Path(path), weights)

    @functools.cached_property
    def replacement(self) -> Replacement:
        """The kernel as what stands in for modules."""
        from kernel_smith.shipping.folder import PACKAGE
        from kernel_smith.shipping.runtime.replacement import Replacement

        return Replacement(self._spec, None, PACKAGE)

    @functools.cached_property
    def _spec(self) -> Spec:
        return spec_of(self.task, self.candidate, self.evaluation, self._facts(), self.original)

    @property
    def _timed(self) -> Timing:
        assert self.evaluation.timing is not None
        return self.evaluation.timing

    def _warn_if_slower(self) -> None:
        timing = self.evaluation.timing
        if timing is not None and timing.speedup.high < 1:
            baseline = timing.speedups[0].baseline
            warnings.warn(
                f"the kernel is slower than {baseline}: {_figure(timing.speedup)}", stacklevel=3
            )

    def _facts(self) -> dict[str, Any]:
        return {"run": self.run, "confirmed": self.confirmed}

    def __repr__(self) -> str:
        shown = [f"{self.task.name} on {self.candidate.backend}"]
        if self.evaluation.timing is not None:
            shown += [f"{_figure(s.speedup)} of {s.baseline}" for s in self._timed.speedups]
        shown.append("confirmed" if self.confirmed else "not confirmed as faster than both")
        return f"Optimized({', '.join(shown)}; run {self.run})"

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = [
            f"<tr><td>{escape(timed.workload)}</td><td>{escape(against.baseline)}</td>"
            f"<td>{against.seconds.p50 * 1e6:.1f} µs</td>"
            f"<td>{timed.candidate.p50 * 1e6:.1f} µs</td>"
            f"<td>{escape(_figure(against.speedup))}</td></tr>"
            for timed in (self._timed.workloads if self.evaluation.timing else ())
            for against in timed.baselines
        ]
        head = (
            "<tr><th>workload</th><th>baseline</th><th>before</th><th>after</th><th>gain</th></tr>"
        )
        return f"<p>{escape(repr(self))}</p><table>{head}{''.join(rows)}</table>"


def _figure(ratio: Interval) -> str:
    return f"{ratio.value:.2f}x [{ratio.low:.2f}, {ratio.high:.2f}]"


def spec_of(
    task: Task,
    candidate: Candidate,
    evaluation: Evaluation,
    facts: dict[str, Any],
    original: torch.nn.Module | None = None,
) -> Spec:
    """Return what is known of an accepted candidate. Raises `BadInput` for one that must not be
    used."""
    from kernel_smith.shipping.folder import own_imports
    from kernel_smith.shipping.runtime.spec import Spec
    from kernel_smith.shipping.runtime.state import fingerprint

    _check_usable(candidate, evaluation)
    timing = evaluation.timing
    speedups = {} if timing is None else {s.baseline: s.speedup for s in timing.speedups}
    return Spec(
        name=task.name,
        kernel=own_imports(candidate.source),
        reference=task.source,
        workloads={workload.name: dict(workload.params) for workload in task.workloads},
        device="cpu" if evaluation.device is None else "cuda",
        fingerprint="" if original is None else fingerprint(original),
        facts={
            "task_hash": task.content_hash,
            "candidate_hash": candidate.content_hash,
            "backend": candidate.backend,
            "precision": task.precision.value,
            "allowed_error": evaluation.accuracy.allowed_error if evaluation.accuracy else None,
            "speedup": None if timing is None else timing.speedup.model_dump(),
            "speedups": {name: ratio.model_dump() for name, ratio in speedups.items()},
            "seconds": {
                one.workload: {
                    "kernel": one.candidate.p50,
                    **{each.baseline: each.seconds.p50 for each in one.baselines},
                }
                for one in (timing.workloads if timing else ())
            },
            "device": None if evaluation.device is None else evaluation.device.name,
            "environment": None
            if evaluation.environment is None
            else evaluation.environment.model_dump(),
            **facts,
        },
    )


def _check_usable(candidate: Candidate, evaluation: Evaluation) -> None:
    if not evaluation.ok:
        raise BadInput(
            f"the kernel was refused: {evaluation.reason}", hint="only accepted kernels are used"
        )
    if evaluation.made_up or evaluation.interpreted or evaluation.conformance:
        raise BadInput(
            "the kernel has not run on the hardware that it is for",
            hint=f"evaluate it there, with --backend {candidate.backend}",
        )
