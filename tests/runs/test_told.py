"""What a run tells whoever proposes: the target, the machine, attempts, other tasks' winners."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.records import (
    Attempts,
    Budget,
    Evaluation,
    Focus,
    Interval,
    Knowledge,
    KnownBaseline,
    Proposal,
    Reason,
    Remeasured,
    Roofline,
    RunConfig,
    RunEnded,
    RunStarted,
    StepEvaluated,
    StepProposed,
    Task,
    WorkloadWork,
)
from kernel_smith.runs.config import winners_from
from kernel_smith.runs.hardware import describe_hardware
from kernel_smith.runs.requests import target_of
from kernel_smith.runs.run import Run
from kernel_smith.runs.state import RunState
from kernel_smith.runs.winners import finds_at, finds_of_store, nearest_winners
from kernel_smith.search.context import context_of
from kernel_smith.search.focus import focus_of
from kernel_smith.store import Store
from kernel_smith.tasks import find_task
from kernel_smith.testing.numbers import program
from kernel_smith.testing.workloads import TASK, speeds_program, with_speeds

NOW = datetime.now(UTC)
RESULTS = Path(__file__).parents[2] / "results" / "h200"
CONFIG = RunConfig(backend="cpp", proposers={"model": 1.0}, budget=Budget())


def state_of(task: Task) -> RunState:
    return RunState.begin(RunStarted(run="r", task=task, config=CONFIG, at=NOW))


def roofline(workload: str, share: float) -> Roofline:
    return Roofline(
        workload=workload,
        bytes=8,
        flops=0,
        precision="fp32",
        launches=1,
        seconds=1e-5,
        bytes_per_second=8e5,
        flops_per_second=0,
        bound="memory",
        share=share,
        floor_seconds=1e-6,
    )


def judged(state: RunState, proposal: Proposal, evaluation: Evaluation) -> None:
    number = state.last_step + 1
    state.apply(StepProposed(step=number, proposal=proposal, at=NOW))
    state.apply(StepEvaluated(step=number, evaluation=evaluation, seconds=0.0, at=NOW))


def test_the_target_is_the_compilers_program_until_its_ratio_is_known(task: Task) -> None:
    state = state_of(task)
    assert "torch.compile" in target_of(state)
    seed = program(2.0)
    judged(state, Proposal(candidate=seed, proposer="seed"), made_up(task, seed, 2.0))
    assert "2.00 times as fast as eager" in target_of(state)
    shown = made_up(task, seed, 3.0, baselines=("eager", "compile"))
    assert shown.timing is not None
    eager, compiled = shown.timing.speedups
    twice = Interval(value=2.0, low=2.0, high=2.0)
    half = compiled.model_copy(update={"speedup": eager.speedup.over(twice)})
    timing = shown.timing.model_copy(update={"speedups": (eager, half)})
    shown = shown.model_copy(update={"timing": timing})
    state.apply(Remeasured(candidate=seed.content_hash, evaluation=shown, confirming=True, at=NOW))
    assert target_of(state).startswith("torch.compile is 2.00 times as fast")


def test_the_target_is_what_the_engine_has_kept_of_earlier_measurings(task: Task) -> None:
    state = state_of(task)
    kept = (
        KnownBaseline(baseline="compile", ratio=1.8),
        KnownBaseline(baseline="max-autotune", ratio=2.125),
    )
    own = program(1.5)
    evaluation = made_up(task, own, 1.5).model_copy(update={"known_baselines": kept})
    judged(state, Proposal(candidate=own, proposer="start"), evaluation)
    assert target_of(state) == (
        "torch.compile is 1.80 times as fast as eager PyTorch here, its mode max-autotune is 2.12 "
        "times as fast: be faster than both."
    )


def test_where_the_compiler_is_slower_than_eager_that_is_the_target(task: Task) -> None:
    state = state_of(task)
    own = program(1.5)
    kept = (KnownBaseline(baseline="compile", ratio=0.74),)
    evaluation = made_up(task, own, 1.5).model_copy(update={"known_baselines": kept})
    judged(state, Proposal(candidate=own, proposer="start"), evaluation)
    assert target_of(state).endswith(
        "0.74 times as fast as eager PyTorch here: be faster than eager PyTorch."
    )


def test_attempts_of_the_lineage_are_told_slower_ones_included() -> None:
    state = state_of(TASK)
    before: str | None = None
    for odd, wide in ((1.0, 1.0), (2.0, 1.0), (2.0, 0.5)):
        own = speeds_program({"odd": odd, "wide": wide})
        parents = (before,) if before else ()
        evaluation = with_speeds(own, {"odd": odd, "wide": wide})
        judged(
            state,
            Proposal(candidate=own, proposer="model", parents=parents, summary=f"{odd} {wide}"),
            evaluation,
        )
        before = own.content_hash
    parent = speeds_program({"odd": 2.0, "wide": 1.0}).content_hash
    (attempts,) = (part for part in context_of(state, parent) if isinstance(part, Attempts))
    assert [each.summary for each in attempts.attempts] == ["2.0 1.0", "2.0 0.5"]
    assert attempts.attempts[0].gains == {"odd": pytest.approx(2.0), "wide": pytest.approx(1.0)}
    assert attempts.attempts[1].gains["wide"] == pytest.approx(0.5)


def test_the_workload_that_is_furthest_behind_comes_first_and_others_have_their_turn() -> None:
    state = state_of(TASK)
    speeds = {"odd": 2.0, "wide": 0.5}
    parent = speeds_program(speeds)
    judged(state, Proposal(candidate=parent, proposer="start"), with_speeds(parent, speeds))
    told = []
    for number in range(7):
        found = focus_of(state, parent.content_hash)
        assert found is not None
        told.append(found.workload)
        child = speeds_program({"odd": 2.0, "wide": 0.1 + number})
        proposal = Proposal(candidate=child, proposer="model", parents=(parent.content_hash,))
        judged(state, proposal, made_up(TASK, child, Reason.COMPILER_REJECTED))
    assert told == ["wide"] * 3 + ["odd"] * 3 + ["wide"]
    sections = context_of(state, parent.content_hash)
    assert Focus(workload="wide", why="it is 0.49x as fast as the reference") in sections


def test_on_a_gpu_the_distance_from_the_limit_decides() -> None:
    state = state_of(TASK)
    speeds = {"odd": 2.0, "wide": 0.5}
    parent = speeds_program(speeds)
    rooflines = (roofline("wide", 0.8), roofline("odd", 0.3))
    evaluation = with_speeds(parent, speeds).model_copy(update={"rooflines": rooflines})
    judged(state, Proposal(candidate=parent, proposer="start"), evaluation)
    found = focus_of(state, parent.content_hash)
    assert found == Focus(workload="odd", why="it is at 30% of the device's limit")


def test_a_task_of_one_workload_has_nothing_to_choose(task: Task) -> None:
    state = state_of(task)
    own = program(2.0)
    judged(state, Proposal(candidate=own, proposer="start"), made_up(task, own, 2.0))
    assert focus_of(state, own.content_hash) is None


def test_the_machine_is_described_by_what_it_has_and_what_there_is_to_do(
    task: Task,
) -> None:
    shown = made_up(task, program(1.0), 1.0)
    machine = shown.environment.model_copy(
        update={"instruction_set": "avx2 fma", "caches": "L1 32K, L2 1M"}
    )
    work = (WorkloadWork(workload="a", bytes=1_500_000, flops=2_000_000_000),)
    text = describe_hardware(shown.model_copy(update={"environment": machine, "work": work}))
    assert "Vector instructions: avx2 fma." in text and "Caches: L1 32K, L2 1M." in text
    assert "Workload a: 1.5 MB to be moved, 2 GFLOP." in text


def won(store: Store, task: Task, speed: float, *, shown: float | None = None) -> None:
    """A run whose winner was confirmed."""
    plain = CONFIG.model_copy(update={"proposers": {"tuner": 1.0}})
    own = program(speed)
    with Run.start(store, task, plain) as run:
        proposal = Proposal(candidate=own, proposer="start")
        evaluation = made_up(task, own, speed)
        last = made_up(task, own, shown or speed, baselines=("eager", "compile"))
        for event in (
            StepProposed(step=0, proposal=proposal, at=NOW),
            StepEvaluated(step=0, evaluation=evaluation, seconds=0.0, at=NOW),
            Remeasured(candidate=own.content_hash, evaluation=last, confirming=True, at=NOW),
            RunEnded(why="done", best=own.content_hash, at=NOW),
        ):
            store.append(run.state.run, event)


SOFTMAX = (
    "import torch\nclass Model:\n    def forward(self, x):\n        return torch.softmax(x, -1)"
)


def test_winners_of_the_nearest_tasks_are_kept_with_the_run(tmp_path: Path) -> None:
    near = Task(name="log_softmax", source=SOFTMAX.replace("softmax", "log_softmax"))
    slow = Task(name="slow_softmax", source=SOFTMAX)
    far = Task(name="far", source="def unrelated(a, b): ...")
    mine = Task(name="softmax", source=SOFTMAX)
    with Store.open(tmp_path / "runs.sqlite", create=True) as store:
        won(store, near, 2.0)
        won(store, near, 3.0)
        won(store, far, 5.0)
        won(store, slow, 0.5)
        won(store, mine, 4.0)
        found = nearest_winners(mine, finds_of_store(store, "cpp"))
        assert [(each.task, each.source) for each in found] == [
            ("log_softmax", program(3.0).source)
        ]
        assert nearest_winners(mine, finds_of_store(store, "triton")) == []
        with Run.start(store, mine, CONFIG) as run:
            (told,) = (part for part in context_of(run.state, None) if isinstance(part, Knowledge))
            assert told.winners[0].task == "log_softmax"
        paper = CONFIG.model_copy(update={"method": "paper"})
        with Run.start(store, mine, paper) as run:
            assert context_of(run.state, None) == ()


def test_winners_of_another_store_are_found_as_well(tmp_path: Path) -> None:
    near = Task(name="log_softmax", source=SOFTMAX.replace("softmax", "log_softmax"))
    mine = Task(name="softmax", source=SOFTMAX)
    theirs = tmp_path / "theirs.sqlite"
    with Store.open(theirs, create=True) as store:
        won(store, near, 3.0)
    asked = CONFIG.model_copy(update={"settings": winners_from([theirs])})
    own = tmp_path / "mine.sqlite"
    with Store.open(own, create=True) as store, Run.start(store, mine, asked) as run:
        (told,) = (part for part in context_of(run.state, None) if isinstance(part, Knowledge))
    assert [each.source for each in told.winners] == [program(3.0).source]


def test_winners_in_a_folder_of_results_are_those_that_its_records_name(tmp_path: Path) -> None:
    near, other = find_task("row_softmax"), find_task("causal_softmax")
    assert other.name != near.name
    own, beside = program(3.0), program(4.0)
    for name, candidate in (("kernel.py", own), ("another.py", beside)):
        (tmp_path / name).write_text(candidate.source)
    (tmp_path / "a_note.py").write_bytes(b"# caf\xe9")
    shown = made_up(near, own, 3.0, baselines=("eager", "compile"))
    (tmp_path / "evaluation.json").write_text(shown.model_dump_json())
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "evaluation.json").write_text("[]")
    found = nearest_winners(other, finds_at(tmp_path, "cpp"))
    assert [(each.task, each.source) for each in found] == [("row_softmax", own.source)]
    assert not nearest_winners(other, finds_at(tmp_path, "triton"))


def test_the_results_of_this_repository_teach() -> None:
    """A task of the same kind as one that is there."""
    known = find_task("add_rms_norm_llm").model_dump(exclude={"content_hash"})
    task = Task.model_validate(known | {"name": "my_norm", "source": known["source"] + "# mine"})
    found = nearest_winners(task, finds_at(RESULTS, "triton"))
    assert found and all("@triton.jit" in each.source for each in found)


def test_a_place_without_anything_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nothing to take winners from"):
        winners_from([tmp_path / "gone"])
