"""Does training pay? Steps of real runs, SFT, RL, and then tasks of families never seen.

    python benchmarks/training_recipe.py --folder F --model MODEL [--stage collect data sft ...]

Without any model, tuner and mutator improve the starting kernels of the training tasks (collect).
Their good steps become rows (data); a model learns from them (sft), and then from what the judge
says of its own answers (rl). Base, SFT and RL model, mutator and tuner each work alone on the tasks
that were held out, from the starting kernel, with the same number of proposals (compare). `report`
writes F/report.json and prints a table.

The same command goes on where it stopped; `--minutes` bounds one call. Models are asked on the GPU
if there is one, kernels are judged on the CPU. Answers without a program count as proposals; that
mutator or tuner know nothing for a parent does not. A program that the run has seen before is
`repeated`, and is not judged again.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import math
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from batched_model import BatchedModel, BatchedProposer
from common import describe_machine
from training_fleet import Fleet

from kernel_smith.errors import BadInput, Interrupted
from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.evolution.crew import begin_with, first_programs, proposers_of
from kernel_smith.evolution.loop import Loop
from kernel_smith.evolution.presets import find_preset
from kernel_smith.evolution.run import Run
from kernel_smith.evolution.state import RunState
from kernel_smith.proposers.base import NothingToPropose, Proposer
from kernel_smith.proposers.model.edits import has_edits
from kernel_smith.records import (
    Budget,
    Candidate,
    Evaluation,
    Event,
    Interval,
    Options,
    Proposal,
    Remeasured,
    Request,
    RunConfig,
    RunStarted,
    Sampling,
    Stage,
    StepDropped,
    StepEvaluated,
    StepProposed,
    Task,
)
from kernel_smith.store import Store
from kernel_smith.tasks import builtin_tasks
from kernel_smith.trajectories.build import BuildSettings, build
from kernel_smith.trajectories.examples import ExampleSettings
from kernel_smith.trajectories.filters import PRESETS
from kernel_smith.trajectories.gains import gain_over

Purpose = Literal["sft", "rl"]

STAGES = ("collect", "data", "sft", "rl", "compare", "report")
ARMS = ("base", "sft", "rl", "mutator", "tuner")
HELD_OUT = ("loss", "pooling", "quantisation", "softmax")
BACKEND = "cpp"
FINAL = Options(sampling=Sampling(target=0.01, unstable_above=0.2, max_seconds=2.0))
SHARES = ("parsed", "repeated", "compiled", "correct", "faster", "cheating")

_ENOUGH_ROWS = 50
_NOT_STRICT = ("held-out", "correct", "timed", "honest-lineage", "faster", "new", "balanced")
_ANY_HONEST = ("held-out", "correct", "timed", "honest-lineage", "new", "balanced")
# The filters to try, until one leaves enough rows. A question need not have a good answer yet.
LADDERS: dict[Purpose, tuple[tuple[str, ...], ...]] = {
    "sft": (PRESETS["sft"], _NOT_STRICT),
    "rl": (PRESETS["rl"], _NOT_STRICT, _ANY_HONEST),
}
_RESAMPLES = 2000
_BEGIN = time.monotonic()


def say(what: str) -> None:
    print(f"[{time.monotonic() - _BEGIN:6.1f} s] {what}", flush=True)


class Key(NamedTuple):
    """Which run of the experiment it is; kept in the run's own configuration."""

    arm: str
    task: str
    seed: int


class OutOfTime(Exception):
    """The next call goes on."""


# Runs


class Counted:
    """A proposer who may be asked for so many proposals and no more."""

    def __init__(self, proposer: Proposer, left: int) -> None:
        self.name = proposer.name
        self.learn = proposer.learn
        self.close = proposer.close
        self._proposer = proposer
        self._left = left
        self._lock = threading.Lock()

    def propose(self, request: Request) -> Proposal:
        with self._lock:
            if self._left <= 0:
                raise NothingToPropose("all that may be asked for was asked for")
            self._left -= 1
        try:
            return self._proposer.propose(request)
        except NothingToPropose:
            with self._lock:
                self._left += 1
            raise


class BesideParent:
    """Has each program of a run timed beside its parent, in the same rounds."""

    def __init__(self, engine: Evaluator, state: RunState) -> None:
        self._engine = engine
        self._parents: dict[str, Candidate] = {}
        for step in state.in_flight():
            self._note(step.proposal, state)

    def hear(self, event: Event, state: RunState) -> None:
        if isinstance(event, StepProposed):
            self._note(event.proposal, state)

    def _note(self, proposal: Proposal, state: RunState) -> None:
        if proposal.parents:
            parent = state.evaluated[proposal.parents[0]].candidate
            self._parents[proposal.candidate.content_hash] = parent

    def submit(
        self,
        task: Task,
        candidate: Candidate,
        options: Options | None = None,
        /,
        *,
        beside: Candidate | None = None,
    ) -> Future[Evaluation]:
        beside = beside or self._parents.get(candidate.content_hash)
        return self._engine.submit(task, candidate, options, beside=beside)


class Runs:
    """Many runs at once, in one store; those that were stopped go on, all stop when time is up."""

    def __init__(self, store: Store, deadline: float) -> None:
        self.store = store
        self._deadline = deadline
        self._loops: list[Loop] = []
        self._lock = threading.Lock()
        self.known = {key: summary for summary in store.runs() if (key := _key(store, summary.id))}

    def ended(self, key: Key) -> bool:
        return key in self.known and self.known[key].state == "ended"

    def do(self, work: Sequence[Callable[[], None]], at_once: int) -> None:
        """Raises `OutOfTime` where some of the work is left."""
        timer = threading.Timer(max(0.0, self._deadline - time.monotonic()), self._stop)
        timer.start()
        try:
            with ThreadPoolExecutor(at_once) as threads:
                futures = [threads.submit(self._in_time, each) for each in work]
        finally:  # also where somebody pressed Ctrl-C
            timer.cancel()
            self._stop()
        errors = [error for future in futures if (error := future.exception()) is not None]
        for error in errors:
            if not isinstance(error, OutOfTime):
                say(f"a run failed: {error!r}")
        if errors:
            raise OutOfTime(f"{len(errors)} of {len(futures)} runs are left.")

    def _in_time(self, work: Callable[[], None]) -> None:
        if time.monotonic() >= self._deadline:
            raise OutOfTime
        work()

    def _stop(self) -> None:
        with self._lock:
            for loop in self._loops:
                loop.stopping = True

    def evolve(
        self,
        key: Key,
        task: Task,
        config: RunConfig,
        make_proposers: Callable[[RunState], dict[str, Proposer]],
        engine: Evaluator,
        *,
        beside: bool,
    ) -> RunState:
        settings = config.settings | {"experiment": key._asdict()}
        config = config.model_copy(update={"settings": settings, "seed": key.seed})
        if key in self.known:
            opened = Run.resume(self.store, self.known[key].id)
        else:
            opened = Run.start(self.store, task, config)
        with opened as run:
            proposers = make_proposers(run.state)
            timed = BesideParent(engine, run.state)
            audience = timed.hear if beside else lambda *_: None
            loop = run.evolve(proposers, timed if beside else engine, audience)
            with self._lock:
                self._loops.append(loop)
            self._in_time(lambda: None)
            loop.run(first_programs(run.state), run.state.seconds)
            if loop.stopping:
                raise OutOfTime
            return run.state


def _key(store: Store, run: str) -> Key | None:
    _, first = next(store.events(run))
    assert isinstance(first, RunStarted)
    noted = first.config.settings.get("experiment")
    return Key(**noted) if noted else None


def starting(task: Task) -> Candidate:
    return Candidate(
        backend=BACKEND, source=Path(task.starts[BACKEND]).read_text(), name="start.py"
    )


def configured(task: Task, proposers: Sequence[str], budget: Budget, *, seed: bool) -> RunConfig:
    config = find_preset("embedded", BACKEND)
    update = {"proposers": dict.fromkeys(proposers, 1.0), "budget": budget}
    return begin_with(config.model_copy(update=update), task, [starting(task)], with_seed=seed)


# Stages


class Recipe:
    """The experiment in a folder. Each stage returns at once if it is done."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self.chosen = chosen
        self.folder: Path = chosen.folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.deadline = _BEGIN + 60 * chosen.minutes
        suite = [task for task in builtin_tasks("cpu") if BACKEND in task.starts]
        unknown = set(chosen.held_out) - {task.family for task in suite}
        if unknown:
            raise BadInput(
                f"no task is of the family {', '.join(sorted(unknown))}",
                hint=f"families: {', '.join(sorted({task.family for task in suite}))}",
            )
        self.held_out = [task for task in suite if task.family in chosen.held_out]
        self.held_out = self.held_out[: chosen.held_out_tasks]
        training = [task for task in suite if task.family not in chosen.held_out]
        self.training = training[: chosen.tasks]

    def collect(self) -> None:
        with Store.open(self.folder / "steps.sqlite", create=True) as store:
            runs = Runs(store, self.deadline)
            keys = {Key("collect", task.name, 0): task for task in self.training}
            left = {key: task for key, task in keys.items() if not runs.ended(key)}
            if not left:
                return
            say(f"collect: {len(left)} of {len(keys)} tasks")
            with Fleet(self.chosen.judges) as fleet:
                work = [partial(self._collect, runs, fleet, key, left[key]) for key in left]
                runs.do(work, at_once=2 * self.chosen.judges)

    def _collect(self, runs: Runs, fleet: Fleet, key: Key, task: Task) -> None:
        budget = Budget(evaluations=self.chosen.evaluations)
        config = configured(task, ("tuner", "mutator"), budget, seed=self.chosen.with_seed)
        with contextlib.ExitStack() as stack:
            state = runs.evolve(
                key,
                task,
                config,
                lambda state: stack.enter_context(proposers_of(state.config)),
                fleet,
                beside=False,
            )
        best = f"{state.best.score:.2f}" if state.best else "nothing"
        say(f"collect: {task.name}: {state.funnel['evaluated']} evaluations, best {best}")

    def data(self) -> None:
        notes = self.folder / "data.json"
        if not notes.exists():
            made = {purpose: self._data(purpose) for purpose in LADDERS}
            notes.write_text(json.dumps(made, indent=1) + "\n")

    def _data(self, purpose: Purpose) -> dict[str, Any]:
        tried: list[str] = []
        for filters in LADDERS[purpose]:
            settings = BuildSettings(
                stores=(self.folder / "steps.sqlite",),
                folder=self.folder / f"data-{purpose}",
                purpose=purpose,
                filters=filters,
                hold_out=tuple(self.chosen.held_out),
                example=ExampleSettings(prompt="brief", answer="edits"),
                validation=0.1 if purpose == "sft" else 0.0,
            )
            try:
                built = build(settings, lambda _: None)
            except BadInput as error:
                tried.append(error.what)
                continue
            rows = keep_changes(built.files, self._rows(purpose))
            note = f"{', '.join(filters)}: {rows} rows of {built.steps_read} steps"
            say(f"data: {purpose}: {note}")
            if rows.get("train", 0) >= _ENOUGH_ROWS:
                break
            tried.append(note)
        if not rows.get("train"):
            raise BadInput(f"no rows for {purpose}: {tried}", hint="raise --evaluations or --tasks")
        left_out = {"refused": built.refused, "tried_before": tried}
        return {"filters": filters, "rows": rows, "steps": built.steps_read, **left_out}

    def _rows(self, purpose: str) -> Path:
        return self.folder / f"rows-{purpose}"

    def sft(self) -> None:
        from kernel_smith.training.config import Lora, SftSettings
        from kernel_smith.training.sft import train_sft

        if is_trained(self.folder / "sft"):
            return
        longest = self._longest("sft", self.chosen.model)
        settings = SftSettings(
            data=self._rows("sft"),
            model=self.chosen.model,
            output=self.folder / "sft",
            lora=Lora(rank=16, alpha=32.0),
            learning_rate=self.chosen.sft_learning_rate,
            steps=self.chosen.sft_steps,
            batch=self.chosen.sft_batch,
            micro_batch=math.gcd(self.chosen.micro_batch, self.chosen.sft_batch),
            sequence_length=min(longest, self.chosen.sequence_length),
            gradient_checkpointing=self.chosen.gradient_checkpointing,
            save_every=25,
            keep_checkpoints=1,
        )
        with self._training():
            train_sft(settings, lambda what: say(f"sft: {what}"))

    def rl(self) -> None:
        from kernel_smith.training.config import Lora, RewardSettings, RlSettings
        from kernel_smith.training.rl import train_rl

        if is_trained(self.folder / "rl"):
            return
        first = self.folder / "sft" / "final"
        longest = min(self._longest("rl", first), self.chosen.sequence_length)
        settings = RlSettings(
            data=self._rows("rl"),
            model=first,
            output=self.folder / "rl",
            lora=Lora(rank=16, alpha=32.0),
            learning_rate=self.chosen.rl_learning_rate,
            steps=self.chosen.rl_steps,
            entries=self.chosen.rl_entries,
            samples=self.chosen.rl_samples,
            micro_batch=math.gcd(
                self.chosen.micro_batch, self.chosen.rl_entries * self.chosen.rl_samples
            ),
            max_new_tokens=self.chosen.max_new_tokens,
            sequence_length=longest + self.chosen.max_new_tokens,
            temperature=self.chosen.rl_temperature,
            advantage=self.chosen.advantage,
            # A small model needs to know how far it got, and no gain may outweigh all others.
            reward=RewardSettings(scale="log2", high=3.0, staged=0.5, cheating=-0.5),
            measure_seconds=0.5,
            gradient_checkpointing=self.chosen.gradient_checkpointing,
            save_every=2,
            keep_checkpoints=1,
        )
        with Fleet(self.chosen.judges) as fleet, self._training():
            train_rl(settings, fleet, lambda what: say(f"rl: {what}"))

    def _longest(self, purpose: str, model: Path) -> int:
        """Tokens of the longest row; a small number of them decides how much memory is needed."""
        from kernel_smith.training.models import load_tokenizer
        from kernel_smith.training.running import chat_tokens

        tokenizer = load_tokenizer(model)
        lengths = [
            chat_tokens(
                tokenizer, row["prompt"] + row.get("completion", []), question=purpose == "rl"
            )
            for row in read_lines(self._rows(purpose) / "train.jsonl")
        ]
        say(f"{purpose}: rows of {min(lengths)} to {max(lengths)} tokens")
        return max(lengths)

    @contextlib.contextmanager
    def _training(self) -> Iterator[None]:
        """A trainer ends in time, as if somebody had pressed Ctrl-C, and gives memory back."""
        import torch

        main = threading.main_thread().ident
        assert main is not None
        seconds = max(0.0, self.deadline - time.monotonic())
        timer = threading.Timer(seconds, signal.pthread_kill, (main, signal.SIGINT))
        timer.start()
        try:
            yield
        except (Interrupted, KeyboardInterrupt):
            if time.monotonic() < self.deadline:
                raise
            raise OutOfTime("Training goes on from its last checkpoint.") from None
        finally:
            timer.cancel()
            gc.collect()
            torch.cuda.empty_cache()

    def _keys(self) -> list[Key]:
        """In an order in which a call that is cut short has all arms of some seeds."""
        return [
            Key(arm, task.name, seed)
            for seed in range(self.chosen.seeds)
            for task in self.held_out
            for arm in self.chosen.arms
        ]

    def compare(self) -> None:
        with (
            Store.open(self.folder / "compare.sqlite", create=True) as store,
            contextlib.ExitStack() as stack,
        ):
            runs = Runs(store, self.deadline)
            finals = self._finals()
            left = [key for key in self._keys() if key not in finals]
            if not left:
                return
            say(f"compare: {len(left)} of {len(self._keys())} runs")
            fleet = stack.enter_context(Fleet(self.chosen.judges))
            folders = {"base": self.chosen.model}
            folders |= {arm: self.folder / arm / "final" for arm in ("sft", "rl")}
            models = {
                arm: stack.enter_context(BatchedModel(folder, self.chosen.max_new_tokens))
                for arm, folder in folders.items()
                if any(key.arm == arm for key in left)
            }
            work = [partial(self._compare, runs, fleet, models, key) for key in left]
            runs.do(work, at_once=self.chosen.at_once or len(work))

    def _compare(self, runs: Runs, fleet: Fleet, models: dict[str, BatchedModel], key: Key) -> None:
        task = next(task for task in self.held_out if task.name == key.task)
        name = "model" if key.arm in models else key.arm
        config = configured(task, (name,), Budget(), seed=False)

        def proposers(state: RunState) -> dict[str, Proposer]:
            if key.arm in models:
                proposer: Proposer = BatchedProposer(models[key.arm])
            else:
                proposer = alone.enter_context(proposers_of(state.config))[name]
            asked = state.by_proposer[name] + state.dropped[name]
            return {name: Counted(proposer, self.chosen.proposals - asked)}

        with contextlib.ExitStack() as alone:
            state = runs.evolve(key, task, config, proposers, fleet, beside=True)
        gain = final_gain(state, task, fleet)
        line = {**key._asdict(), "run": state.run, "gain": gain}
        with (self.folder / "finals.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
        say(f"compare: {key.arm} {key.task} {key.seed}: {gain:.2f}x the start")

    def _finals(self) -> dict[Key, dict[str, Any]]:
        lines = read_lines(self.folder / "finals.jsonl")
        return {Key(line["arm"], line["task"], line["seed"]): line for line in lines}

    def report(self) -> None:
        finals = self._finals()
        complete = {
            (key.task, key.seed)
            for key in finals
            if all(Key(arm, key.task, key.seed) in finals for arm in self.chosen.arms)
        }
        rows: list[dict[str, Any]] = []
        if complete:
            with Store.open(self.folder / "compare.sqlite") as store:
                for key, line in finals.items():
                    if key.arm in self.chosen.arms and (key.task, key.seed) in complete:
                        rows += [key._asdict() | row for row in proposals_of(store, line["run"])]
        with (self.folder / "proposals.jsonl").open("w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        best = {key: line["gain"] for key, line in finals.items()}
        best = {key: gain for key, gain in best.items() if (key.task, key.seed) in complete}
        report = {
            "machine": describe_machine() | describe_accelerator(),
            "settings": {name: _plain(value) for name, value in vars(self.chosen).items()},
            "training_tasks": [task.name for task in self.training],
            "held_out_tasks": [task.name for task in self.held_out],
            "seconds": read_json(self.folder / "seconds.json"),
            "data": read_json(self.folder / "data.json"),
            "runs_of_each": len(complete),
            "arms": {arm: figures(arm, rows, best) for arm in self.chosen.arms if complete},
            "sft_curve": curve(self.folder / "sft", ("loss", "eval_loss")),
            "rl_curve": curve(self.folder / "rl", ("reward", *SHARES)),
            "caught": caught(self.folder / "rl"),
        }
        (self.folder / "report.json").write_text(json.dumps(report, indent=1) + "\n")
        print_table(report)


def keep_changes(files: Sequence[Path], folder: Path) -> dict[str, int]:
    """The rows that ask for edits of a parent: here nobody is asked for a first program."""
    folder.mkdir(exist_ok=True)
    counts: dict[str, int] = {}
    for file in files:
        rows = [row for row in read_lines(file) if has_edits(row["prompt"][-1]["content"])]
        target = folder / file.name
        target.write_text("".join(json.dumps(row) + "\n" for row in rows))
        if rows:
            counts[file.stem] = len(rows)
        else:
            target.unlink()
    return counts


def final_gain(state: RunState, task: Task, engine: Evaluator) -> float:
    """The best program once more, at length, beside the start; the start itself if it fails."""
    start = starting(task)
    if state.best is None or state.best.candidate.source == start.source:
        return 1.0
    for _ in range(2):
        shown = engine.submit(task, state.best.candidate, FINAL, beside=start).result()
        if shown.ok and shown.beside is not None and shown.beside.gain is not None:
            return shown.beside.gain.value
        if not shown.stage.fleeting:
            break
    return 1.0


def is_trained(folder: Path) -> bool:
    return bool(read_json(folder / "training.json").get("state") == "done")


# Figures


def proposals_of(store: Store, run: str) -> Iterator[dict[str, Any]]:
    """What became of each proposal of a run, in the order in which that was known."""
    proposed: dict[int, Proposal] = {}
    known: dict[str, Evaluation] = {}
    for _, event in store.events(run):
        match event:
            case StepProposed():
                proposed[event.step] = event.proposal
            case StepDropped():
                again = event.why == "the program is known"
                yield _outcome(None, None, parsed=again) | {"repeated": again, "why": event.why}
            case StepEvaluated():
                proposal = proposed[event.step]
                known[event.evaluation.candidate_hash] = event.evaluation
                if proposal.parents:
                    parent = known[proposal.parents[0]]
                    change = {"summary": proposal.summary}
                    yield _outcome(event.evaluation, parent, parsed=True) | change
            case Remeasured():
                known[event.candidate] = event.evaluation


def _outcome(
    child: Evaluation | None, parent: Evaluation | None, *, parsed: bool
) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(SHARES, False) | {"parsed": parsed, "gain": 0.0}
    if child is None or parent is None:
        return row
    gain = gain_over(child, parent)
    row["compiled"] = child.stage not in (Stage.SCREENED_OUT, Stage.COMPILE_ERROR)
    row["correct"] = child.ok
    row["cheating"] = child.stage is Stage.CHEATING
    row["faster"] = gain is not None and gain.overall.low > 1
    row["gain"] = gain.overall.value if gain is not None else 0.0
    row["side_by_side"] = gain is not None and gain.side_by_side
    return row | {"stage": child.stage.value, "reason": child.reason and child.reason.value}


def figures(arm: str, rows: list[dict[str, Any]], best: dict[Key, float]) -> dict[str, Any]:
    """Shares of all proposals; means over runs. Intervals are of 95%."""
    own = [row for row in rows if row["arm"] == arm]
    by_run: dict[tuple[str, int], list[float]] = {}
    for row in own:
        by_run.setdefault((row["task"], row["seed"]), []).append(row["gain"])
    logs = [math.log(gain) for key, gain in best.items() if key.arm == arm]
    speedup = resampled(logs, lambda drawn: math.exp(sum(drawn) / len(drawn)))
    return {
        "proposals": len(own),
        "shares": {name: wilson(sum(row[name] for row in own), len(own)) for name in SHARES},
        "gain_per_proposal": resampled(list(by_run.values()), _mean_of_all),
        "best_over_start": speedup,
        "runs": len(logs),
        "faster_than_start": sum(log > 0 for log in logs),
    }


def _mean_of_all(runs: Sequence[list[float]]) -> float:
    gains = [gain for run in runs for gain in run]
    return sum(gains) / len(gains)


def wilson(count: int, total: int, z: float = 1.96) -> dict[str, float] | None:
    """A share with the interval that also holds near 0 and 1."""
    if not total:
        return None
    share = count / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    spread = math.sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
    half = z * spread / (1 + z * z / total)
    return Interval(
        value=share, low=max(0.0, middle - half), high=min(1.0, middle + half)
    ).model_dump()


def resampled(
    items: Sequence[Any], figure: Callable[[Sequence[Any]], float]
) -> dict[str, float] | None:
    """A figure of all items, with the interval of the same figure of items drawn from them."""
    if not items:
        return None
    chance = random.Random(0)
    drawn = sorted(figure(chance.choices(items, k=len(items))) for _ in range(_RESAMPLES))
    low, high = drawn[int(0.025 * _RESAMPLES)], drawn[int(0.975 * _RESAMPLES)]
    return Interval(value=figure(items), low=low, high=high).model_dump()


def curve(folder: Path, names: Sequence[str]) -> list[dict[str, float]]:
    lines = read_lines(folder / "metrics.jsonl")
    kept = [{name: line[name] for name in ("step", *names) if name in line} for line in lines]
    return [line for line in kept if len(line) > 1]


def caught(folder: Path) -> dict[str, Any]:
    """What the judge caught while RL went on: how often, for what, and a few of them."""
    lines = read_lines(folder / "caught.jsonl")
    reasons: dict[str, int] = {}
    for line in lines:
        reasons[line["reason"]] = reasons.get(line["reason"], 0) + 1
    answers = len(read_lines(folder / "rollouts.jsonl"))
    return {"answers": answers, "caught": len(lines), "reasons": reasons, "examples": lines[-3:]}


def describe_accelerator() -> dict[str, str]:
    import torch
    import transformers
    import trl

    gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "none"
    return {"gpu": gpu, "transformers": transformers.__version__, "trl": trl.__version__}


def print_table(report: dict[str, Any]) -> None:
    columns = ["proposer", "proposals", *SHARES, "gain per proposal", "best over start"]
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for arm, of_arm in report["arms"].items():
        shares = [_shown(of_arm["shares"][name], 100, "%") for name in SHARES]
        means = [_shown(of_arm[name], 1, "") for name in ("gain_per_proposal", "best_over_start")]
        print("| " + " | ".join([arm, str(of_arm["proposals"]), *shares, *means]) + " |")
    print(f"\n{report['runs_of_each']} runs of each. Seconds: {report['seconds']}.")
    watch = report["caught"]
    print(f"RL: {watch['caught']} of {watch['answers']} answers cheated: {watch['reasons']}.")


def _shown(figure: dict[str, float] | None, scale: float, unit: str) -> str:
    if figure is None:
        return "-"
    digits = 0 if unit else 2
    value, low, high = (f"{scale * figure[name]:.{digits}f}" for name in ("value", "low", "high"))
    return f"{value}{unit} [{low}, {high}]"


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


def read_lines(path: Path) -> list[dict[str, Any]]:
    """A crash may cut the last line."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def read_json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--folder", type=Path, required=True, help="where everything is kept")
    add("--model", type=Path, required=True, help="a folder that transformers can load")
    add("--stage", nargs="+", choices=STAGES, default=STAGES)
    add("--minutes", type=float, default=9.0, help="stop in time; the same command goes on")
    add("--judges", type=int, default=4, help="each with its cores; models use what is left")
    add("--evaluations", type=int, default=40, help="of each training task")
    add("--tasks", type=int, default=None, help="so many training tasks; default: all")
    add("--with-seed", action="store_true", help="collect from the compiler's kernels, too")
    add("--held-out", nargs="+", default=HELD_OUT, metavar="FAMILY")
    add("--held-out-tasks", type=int, default=None, help="so many of them; default: all")
    add("--sequence-length", type=int, default=6144, help="longer rows are left out")
    add("--micro-batch", type=int, default=4, help="sequences in memory at once")
    add("--gradient-checkpointing", action="store_true")
    add("--sft-steps", type=int, default=150)
    add("--sft-batch", type=int, default=16)
    add("--sft-learning-rate", type=float, default=2e-4)
    add("--rl-steps", type=int, default=12)
    add("--rl-entries", type=int, default=6, help="questions of a step")
    add("--rl-samples", type=int, default=8, help="answers to each")
    add("--rl-learning-rate", type=float, default=1e-4)
    add("--rl-temperature", type=float, default=1.0)
    add("--advantage", choices=("group", "leave-one-out"), default="group")
    add("--max-new-tokens", type=int, default=512, help="of an answer")
    add("--arms", nargs="+", choices=ARMS, default=ARMS, help="who is compared")
    add("--proposals", type=int, default=16, help="of each run that is compared")
    add("--seeds", type=int, default=3, help="runs of each held-out task and proposer")
    add("--at-once", type=int, default=0, help="runs that are compared; 0: all")
    return parser.parse_args()


def main() -> None:
    chosen = arguments()
    recipe = Recipe(chosen)
    for stage in STAGES:
        if stage not in chosen.stage:
            continue
        begin = time.monotonic()
        try:
            getattr(recipe, stage)()
        except OutOfTime as why:
            sys.exit(f"{stage}: not done. {why} The same command goes on.")
        finally:
            note_seconds(recipe.folder / "seconds.json", stage, time.monotonic() - begin)
        say(f"{stage}: done")


def note_seconds(path: Path, stage: str, seconds: float) -> None:
    """Of all calls together."""
    spent = read_json(path)
    spent[stage] = round(spent.get(stage, 0.0) + seconds, 1)
    path.write_text(json.dumps(spent) + "\n")


if __name__ == "__main__":
    main()
