"""Choose the numbers of programs for KernelBench by timing them, before they are told to the judge.

    python benchmarks/told_numbers.py CHECKOUT results/kernelbench/drafts -o FOLDER --minutes 4
    kernel-smith bench run CHECKOUT --told FOLDER --problem 'level1/58_*' ...

A draft is DRAFTS/LEVEL/PROBLEM/NAME.py, which has a line `CONFIG = {...}` with all that may be
chosen, and NAME.json beside it: a list of what each variant changes, the most promising one first.
Variants, and the told programs of the problem that `--beside` holds, are compiled and called once
by processes side by side, which share Triton's cache. Those that can be called are timed one after
the other, as graphs with a cold cache. A problem's fastest variant that is as right as these, and
faster by `--gain`, is written to FOLDER/LEVEL/PROBLEM with the next number, the fastest of these
beside it. What was timed is printed, and written as JSON with `--json`. The judge has the last
word.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

_CONFIG = re.compile(r"^CONFIG = (\{.*\})$", re.MULTILINE)
_ENOUGH_SECONDS, _MOST_CALLS, _FEWEST_CALLS = 0.15, 25, 5
_CACHE_BYTES = 256 << 20
_RIGHT = 0.02  # of the largest result; the judge is stricter


@dataclass(frozen=True)
class Variant:
    """One setting of a draft, or a program that was told before."""

    problem: str
    path: str
    is_told: bool = False
    turn: int = 0
    """The first of all problems come first."""


@dataclass(frozen=True)
class Timed:
    """What came of one: microseconds of a call, and the largest error beside the largest result."""

    variant: Variant
    microseconds: float
    error: float


def variants_of(drafts: Path, folder: Path, most: int) -> Iterator[Variant]:
    """Write the settings of all drafts as programs."""
    for draft in sorted(drafts.glob("*/*/*.py")):
        problem, text = str(draft.parent.relative_to(drafts)), draft.read_text()
        found = _CONFIG.search(text)
        if found is None:
            sys.exit(f"{draft}: no line `CONFIG = {{...}}`")
        usual = ast.literal_eval(found[1])
        for turn, changes in enumerate(json.loads(draft.with_suffix(".json").read_text())[:most]):
            path = folder / problem / f"{draft.stem}_{turn}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            line = f"CONFIG = {usual | changes!r}"
            path.write_text(text[: found.start()] + line + text[found.end() :])
            yield Variant(problem, str(path), turn=turn)


def told_beside(told: Path, folder: Path, problems: set[str]) -> Iterator[Variant]:
    """Copies, beside which notes may lie."""
    for problem in sorted(problems):
        for path in sorted((told / problem).glob("*.py")):
            copy = folder / problem / "told" / path.name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
            yield Variant(problem, str(copy), is_told=True)


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(re.sub(r"\W", "_", path), path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Bench:
    """A problem on the GPU: its model, with inputs that were drawn there."""

    def __init__(self, checkout: Path, problem: str) -> None:
        import torch

        self._reference = load(str(checkout / "KernelBench" / f"{problem}.py"))
        with torch.device("cuda"):
            torch.manual_seed(0)
            self.model = self._make(self._reference.Model)
            self.inputs = [
                value.cuda() if isinstance(value, torch.Tensor) else value
                for value in self._reference.get_inputs()
            ]

    def program(self, path: str) -> Any:
        made = self._make(load(path).ModelNew)
        made.load_state_dict(self.model.state_dict())
        return made

    def _make(self, kind: Any) -> Any:
        import torch

        with torch.device("cuda"):
            return kind(*self._reference.get_init_inputs()).cuda()


def try_out(checkout: Path, variant: Variant) -> None:
    """Call it once, which compiles it. What is wrong lies beside it then; nothing, if it ended."""
    import torch

    wrong = ""
    try:
        bench = Bench(checkout, variant.problem)
        with torch.no_grad():
            bench.program(variant.path)(*bench.inputs)
        torch.cuda.synchronize()
    except Exception as error:
        wrong = f"{type(error).__name__}: {error}"[:300]
    _note_of(variant).write_text(json.dumps(wrong))
    if wrong and not _is_usable():
        os._exit(1)  # a device that met an error takes no more work from this process
    bench = None
    torch.cuda.empty_cache()


def _is_usable() -> bool:
    import torch

    try:
        torch.cuda.synchronize()
    except Exception:
        return False
    return True


def _note_of(variant: Variant) -> Path:
    return Path(f"{variant.path}.note")


def try_all(
    checkout: Path, variants: list[Variant], processes: int, seconds: float
) -> list[Variant]:
    """Side by side; which of them ended well in time."""
    deadline = time.monotonic() + seconds
    pool = multiprocessing.get_context("spawn").Pool(processes)
    for variant in sorted(variants, key=lambda each: each.turn):
        pool.apply_async(try_out, (checkout, variant))
    while time.monotonic() < deadline and not all(_note_of(v).exists() for v in variants):
        time.sleep(0.3)
    pool.terminate()
    fine = []
    for variant in variants:
        note = _note_of(variant)
        wrong = json.loads(note.read_text() or '"half done"') if note.exists() else "not in time"
        if wrong:
            print(f"{variant.path}: {wrong}", flush=True)
        else:
            fine.append(variant)
    return fine


def microseconds(program: Any, inputs: list[Any], flush: Any) -> float:
    """Of a call, replayed as a graph; the middle of several."""
    import torch

    with torch.no_grad():
        program(*inputs)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = program(*inputs)
    taken: list[float] = []
    begun = time.monotonic()
    while len(taken) < _MOST_CALLS and (
        len(taken) < _FEWEST_CALLS or time.monotonic() - begun < _ENOUGH_SECONDS
    ):
        flush.zero_()
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        graph.replay()
        events[1].record()
        torch.cuda.synchronize()
        taken.append(1e3 * events[0].elapsed_time(events[1]))
    del kept
    return median(taken)


def time_problem(
    checkout: Path, problem: str, variants: list[Variant], deadline: float
) -> list[Timed]:
    """One after the other, as far as time goes; told programs first."""
    import torch

    bench, found = Bench(checkout, problem), []
    flush = torch.empty(_CACHE_BYTES, dtype=torch.int8, device="cuda")
    with torch.no_grad():
        expected = bench.model(*bench.inputs)
    largest = expected.abs().max().item()
    for variant in sorted(variants, key=lambda each: (not each.is_told, each.turn)):
        if time.monotonic() > deadline:
            break
        try:
            program = bench.program(variant.path)
            with torch.no_grad():
                error = (program(*bench.inputs) - expected).abs().max().item() / largest
            taken = microseconds(program, bench.inputs, flush)
        except Exception as error:
            print(f"{variant.path}: {type(error).__name__}: {error}"[:300], flush=True)
            if not _is_usable():
                raise
            continue
        found.append(Timed(variant, taken, error))
    return sorted(found, key=lambda each: each.microseconds)


def choose(timed: list[Timed], gain: float) -> tuple[Timed | None, Timed | None]:
    """The fastest told program, and what is to be told, if anything is."""
    told = [each for each in timed if each.variant.is_told]
    right = max([_RIGHT, *(2 * each.error for each in told[:1])])
    fine = [each for each in timed if not each.variant.is_told and each.error <= right]
    best, before = (fine or [None])[0], (told or [None])[0]
    if best is None or (before and best.microseconds * gain > before.microseconds):
        return before, None
    return before, best


def keep(problem: str, before: Timed | None, best: Timed, told: Path, output: Path) -> Path:
    numbers = [int(p.stem) for p in (told / problem).glob("*.py") if p.stem.isdigit()]
    place = output / problem / f"{max(numbers, default=0) + 1}.py"
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(best.variant.path, place)
    if before is not None:
        shutil.copy(before.variant.path, place.parent)
    return place


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("drafts", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--beside", type=Path, default=Path("results/kernelbench/told"))
    parser.add_argument("--minutes", type=float, default=10.0, help="of all, compiling included")
    parser.add_argument("--most", type=int, default=16, help="variants of a draft")
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) - 3))
    parser.add_argument("--gain", type=float, default=1.015, help="what is worth being told")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def main() -> None:
    import torch

    chosen = read_options()
    if not torch.cuda.is_available():
        sys.exit("this needs a GPU")
    deadline = time.monotonic() + 60 * chosen.minutes
    found: list[Timed] = []
    with tempfile.TemporaryDirectory() as folder:
        variants = list(variants_of(chosen.drafts, Path(folder), chosen.most))
        problems = {each.problem for each in variants}
        variants += told_beside(chosen.beside, Path(folder), problems)
        fine = try_all(chosen.checkout, variants, chosen.processes, 30 * chosen.minutes)
        for problem in sorted(problems):
            mine = [each for each in fine if each.problem == problem]
            timed = time_problem(chosen.checkout, problem, mine, deadline)
            found += timed
            before, best = choose(timed, chosen.gain)
            place = best and keep(problem, before, best, chosen.beside, chosen.output)
            print(f"{problem}: {place or 'nothing to tell'}", flush=True)
            for each in timed[:4]:
                name = Path(each.variant.path).name
                print(f"    {each.microseconds:8.1f} us  {each.error:.1e}  {name}", flush=True)
        if chosen.json:
            chosen.json.write_text(json.dumps([asdict(each) for each in found], indent=1))


if __name__ == "__main__":
    main()
