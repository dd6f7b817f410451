"""Does training pay? Steps of real runs, SFT, RL, and then tasks of families never seen.

    python benchmarks/training_recipe.py --folder F --model MODEL [--stage collect data sft ...]

Without any model, tuner and mutator improve the starting kernels of the training tasks (collect).
Their good steps, and those of other runs that are brought along as F/steps*.sqlite, become rows
(data). A model learns from them (sft), and then from what the judge says of its own answers (rl).
Base, SFT and RL model, mutator and tuner each work alone on the tasks that were held out, from the
starting kernel, with the same number of proposals (compare). `report` writes F/report.json and
prints a table.

The same command goes on where it stopped; `--minutes` bounds one call. What a training that was
stopped has come to is compared, too. Models are asked on the GPU if there is one, kernels are
judged on the CPU. Answers without a program count as proposals; that mutator or tuner know nothing
for a parent does not. A program that the run has seen before is `repeated` and not judged again.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import math
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from common import describe_machine
from training_figures import (
    caught,
    curve,
    describe_accelerator,
    figures,
    plain,
    print_table,
    read_json,
    read_lines,
)
from training_fleet import Fleet
from training_outcomes import SHARES, Told, told_of
from training_rows import LADDERS, Wanted, leave_out_long_answers, longest_row, make_rows, rows_in
from training_runs import BACKEND, BEGIN, Counted, Runs, configured, say, starting

from kernel_smith.errors import BadInput, Interrupted
from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.proposers.base import Worker
from kernel_smith.proposers.model import ModelProposer
from kernel_smith.records import (
    Budget,
    Note,
    Options,
    Proposal,
    Request,
    Sampling,
    Task,
)
from kernel_smith.runs.campaign import Key, OutOfTime
from kernel_smith.runs.state import RunState
from kernel_smith.runs.workers import workers_of
from kernel_smith.store import Store
from kernel_smith.tasks import builtin_tasks
from kernel_smith.training.local_model import LocalModel

STAGES = ("collect", "data", "sft", "rl", "compare", "report")
ARMS = ("base", "sft", "rl", "mutator", "tuner")
HELD_OUT = ("loss", "pooling", "quantisation", "softmax")
FINAL = Options(sampling=Sampling(target=0.01, unstable_above=0.2, max_seconds=2.0))


class ToldOfTheParent(ModelProposer):
    """Shows a model a parent and its verdict, as its training did, and asks once. Other programs,
    failures and lessons of the run are not told."""

    def __init__(self, model: LocalModel) -> None:
        settings = model.settings(
            mode="edits",
            templates="brief",
            max_prompt_tokens=8000,
            max_repairs=0,
            asks_again=False,
            give_up_after=None,
        )
        super().__init__(settings, transports={model.name: model.transport()})

    def start(self, request: Request) -> Future[Proposal | Note]:
        return super().start(request.model_copy(update={"context": ()}))


class Recipe:
    """The experiment in a folder. Each stage returns at once if it is done."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self.chosen = chosen
        self.folder: Path = chosen.folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.deadline = BEGIN + 60 * chosen.minutes
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
            keys = {
                Key("collect", task.name, seed): task
                for seed in range(self.chosen.collections)
                for task in self.training
            }
            left = {key: task for key, task in keys.items() if not runs.ended(key)}
            if not left:
                return
            say(f"collect: {len(left)} of {len(keys)} runs")
            with Fleet(self.chosen.judges) as fleet:
                work = [partial(self._collect, runs, fleet, key, left[key]) for key in left]
                runs.do_all(work, at_once=2 * self.chosen.judges)

    def _collect(self, runs: Runs, fleet: Fleet, key: Key, task: Task) -> None:
        budget = Budget(evaluations=self.chosen.evaluations)
        config = configured(task, ("tuner", "mutator"), budget, seed=self.chosen.with_seed)
        with contextlib.ExitStack() as stack:
            state = runs.evolve(
                key,
                task,
                config,
                lambda state: stack.enter_context(workers_of(state.config)),
                fleet,
                beside=False,
            )
        best = f"{state.best.score:.2f}" if state.best else "nothing"
        say(f"collect: {task.name}: {state.funnel['evaluated']} evaluations, best {best}")

    def data(self) -> None:
        notes = self.folder / "data.json"
        if not notes.exists():
            wanted = Wanted(tuple(self.chosen.held_out), self.chosen.least_gain)
            made = {purpose: make_rows(self.folder, purpose, wanted) for purpose in LADDERS}
            notes.write_text(json.dumps(made, indent=1) + "\n")

    def sft(self) -> None:
        from kernel_smith.training.config import Lora, SftSettings
        from kernel_smith.training.models import load_tokenizer
        from kernel_smith.training.sft import train_sft

        if is_trained(self.folder / "sft"):
            return
        tokenizer = load_tokenizer(self.chosen.model)
        leave_out_long_answers(self.folder, tokenizer, self.chosen.max_new_tokens)
        longest = longest_row(self.folder, "sft", tokenizer)
        settings = SftSettings(
            data=rows_in(self.folder, "sft"),
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
        from kernel_smith.training.models import load_tokenizer
        from kernel_smith.training.rl import train_rl

        if is_trained(self.folder / "rl"):
            return
        first = self.folder / "sft" / "final"
        longest = longest_row(self.folder, "rl", load_tokenizer(first))
        longest = min(longest, self.chosen.sequence_length)
        settings = RlSettings(
            data=rows_in(self.folder, "rl"),
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
            # A small model needs to know how far it got, but changes that are merely harmless
            # must not pay as well as those that help; and no gain may outweigh all others.
            reward=RewardSettings(
                scale="log2", high=3.0, staged=self.chosen.rl_staged, cheating=-0.5
            ),
            measure_seconds=0.5,
            call_seconds=2.0,
            gradient_checkpointing=self.chosen.gradient_checkpointing,
            save_every=2,
            keep_checkpoints=1,
        )
        with Fleet(self.chosen.judges) as fleet, self._training():
            train_rl(settings, fleet, lambda what: say(f"rl: {what}"))

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
            machine = describe_machine() | describe_accelerator()
            (self.folder / "machine.json").write_text(json.dumps(machine, indent=1) + "\n")
            fleet = stack.enter_context(Fleet(self.chosen.judges))
            models = {
                arm: stack.enter_context(LocalModel(self._model(arm), self.chosen.max_new_tokens))
                for arm in ("base", "sft", "rl")
                if any(key.arm == arm for key in left)
            }
            work = [partial(self._compare, runs, fleet, models, key) for key in left]
            runs.do_all(work, at_once=self.chosen.at_once or len(work))

    def _model(self, arm: str) -> Path:
        """What a training has come to, even if it was not finished."""
        if arm == "base":
            return Path(self.chosen.model)
        folder = self.folder / arm
        checkpoints = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name[11:]))
        if is_trained(folder) or not checkpoints:
            return folder / "final"
        from kernel_smith.training.models import merge_adapter, need_libraries

        need_libraries()
        say(f"compare: {arm} is not done; this is {checkpoints[-1].name}")
        merge_adapter(checkpoints[-1], folder / "so-far")
        return folder / "so-far"

    def _compare(self, runs: Runs, fleet: Fleet, models: dict[str, LocalModel], key: Key) -> None:
        task = next(task for task in self.held_out if task.name == key.task)
        name = "model" if key.arm in models else key.arm
        config = configured(task, (name,), Budget(), seed=False)

        def workers(state: RunState) -> dict[str, Worker]:
            if key.arm in models:
                worker: Worker = ToldOfTheParent(models[key.arm])
                alone.callback(worker.close)
            else:
                worker = alone.enter_context(workers_of(state.config))[name]
            asked = state.by_proposer[name] + state.dropped[name]
            return {name: Counted(worker, self.chosen.proposals - asked)}

        with contextlib.ExitStack() as alone:
            state = runs.evolve(key, task, config, workers, fleet, beside=True)
        gain = final_gain(state, task, fleet)
        line = {**key._asdict(), "run": state.run, "gain": gain}
        with (self.folder / "finals.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
        say(f"compare: {key.arm} {key.task} {key.seed}: {gain:.2f}x the start")

    def _finals(self) -> dict[Key, dict[str, Any]]:
        lines = read_lines(self.folder / "finals.jsonl")
        return {Key(line["arm"], line["task"], line["seed"]): line for line in lines}

    def report(self) -> None:
        """Of the first `--proposals` of each run, where all who are compared came so far."""
        told, finals, arms = self._told(), self._finals(), self.chosen.arms
        runs = sorted({key[1:] for key in told})
        common = [run for run in runs if all(Key(arm, *run) in told for arm in arms)]
        shown: dict[str, Any] = {}
        with (self.folder / "proposals.jsonl").open("w") as file:
            for arm in arms if common else ():
                keys = [Key(arm, *run) for run in common]
                for key in keys:
                    rows = (key._asdict() | row for row in told[key].proposals)
                    file.writelines(json.dumps(row) + "\n" for row in rows)
                # What came after the first proposals says nothing of them.
                last = all(told[key].ended and key in finals for key in keys)
                best = [finals[key]["gain"] for key in keys] if last else []
                shown[arm] = figures([told[key] for key in keys], best)
        report = {
            "machine": read_json(self.folder / "machine.json"),
            "settings": {name: plain(value) for name, value in vars(self.chosen).items()},
            "training_tasks": [task.name for task in self.training],
            "held_out_tasks": [task.name for task in self.held_out],
            "seconds": read_json(self.folder / "seconds.json"),
            "data": read_json(self.folder / "data.json"),
            "runs_of_each": len(common),
            "arms": shown,
            "sft_curve": curve(self.folder / "sft", ("loss", "eval_loss")),
            "rl_curve": curve(self.folder / "rl", ("reward", *SHARES)),
            "caught": caught(self.folder / "rl"),
        }
        (self.folder / "report.json").write_text(json.dumps(report, indent=1) + "\n")
        print_table(report)

    def _told(self) -> dict[Key, Told]:
        """Runs that came far enough, ended or not."""
        path, most = self.folder / "compare.sqlite", self.chosen.proposals
        if not path.exists():
            return {}
        with Store.open(path) as store:
            runs = Runs(store, self.deadline).known
            told = {key: told_of(store, run.id, most) for key, run in runs.items()}
        return {key: run for key, run in told.items() if run.ended or len(run.proposals) == most}


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


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--folder", type=Path, required=True, help="where everything is kept")
    add("--model", type=Path, required=True, help="a folder that transformers can load")
    add("--stage", nargs="+", choices=STAGES, default=STAGES)
    add("--minutes", type=float, default=9.0, help="stop in time; the same command goes on")
    add("--judges", type=int, default=4, help="each with its cores; models use what is left")
    add("--evaluations", type=int, default=40, help="of each run on a training task")
    add("--collections", type=int, default=1, help="runs of each, by chance different")
    add("--tasks", type=int, default=None, help="so many training tasks; default: all")
    add("--with-seed", action="store_true", help="collect from the compiler's kernels, too")
    add("--held-out", nargs="+", default=HELD_OUT, metavar="FAMILY")
    add("--held-out-tasks", type=int, default=None, help="so many of them; default: all")
    add("--sequence-length", type=int, default=6144, help="longer rows are left out")
    add("--micro-batch", type=int, default=4, help="sequences in memory at once")
    add("--gradient-checkpointing", action="store_true")
    add("--least-gain", type=float, default=1.1, help="of the steps that SFT learns from")
    add("--sft-steps", type=int, default=150)
    add("--sft-batch", type=int, default=16)
    add("--sft-learning-rate", type=float, default=2e-4)
    add("--rl-steps", type=int, default=12)
    add("--rl-entries", type=int, default=6, help="questions of a step")
    add("--rl-samples", type=int, default=8, help="answers to each")
    add("--rl-learning-rate", type=float, default=1e-4)
    add("--rl-temperature", type=float, default=1.0)
    add(
        "--rl-staged", type=float, default=0.1, help="reward of a correct program that is no faster"
    )
    add("--advantage", choices=("group", "leave-one-out"), default="leave-one-out")
    add("--max-new-tokens", type=int, default=1024, help="of an answer")
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
