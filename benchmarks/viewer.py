"""How quickly does a report of 10,000 candidates open, and how quickly does it answer?

A made-up run (four proposers, a tree of programs, failures, prompts) is written to a store, then
as one HTML file, which a headless Chromium opens several times. Opening is measured by the page's
own clock, from the navigation to the first drawn view; the other figures are from a change of the
address, or a key, to the drawing after it.

    python benchmarks/viewer.py [--candidates 10000] [--times 5] [--json results.json]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from common import describe_machine, progress
from store import make_evaluation, mutate, prose

from kernel_smith.cli.task_words import words_of
from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.records import (
    Budget,
    Candidate,
    Conversation,
    Evaluation,
    Message,
    Proposal,
    Reason,
    RunConfig,
    RunEnded,
    RunStarted,
    StepEvaluated,
    StepProposed,
    Task,
    Usage,
)
from kernel_smith.store import Store
from kernel_smith.tasks import find_task
from kernel_smith.testing.browser import Browser, Page
from kernel_smith.viewer.bench_page import ResultBook
from kernel_smith.viewer.book import RunBook
from kernel_smith.viewer.report import write_report

TASK = "layer_norm"
RUN = "made-up"
WHO = ("mutator", "tuner", "model", "outside")
FAILURES = (Reason.COMPILER_REJECTED, Reason.WRONG_VALUES, Reason.CALL_TIMEOUT)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SECONDS_PER_STEP = 2.0
FAIL_SHARE, MODEL_SHARE = 0.3, 0.2

# From a change of the address to the drawing after it.
GO = """(async () => {{
  const begin = performance.now();
  location.hash = {address};
  const drawn = () => document.getElementById("main").dataset.ready === {address};
  while (!drawn()) await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  return performance.now() - begin;
}})()"""
FILTER = """(async () => {
  const begin = performance.now();
  const search = document.getElementById("search");
  search.value = "unroll 77";
  search.dispatchEvent(new Event("input"));
  await new Promise(requestAnimationFrame);
  return performance.now() - begin;
})()"""
SCROLL = """(async () => {
  const table = document.getElementById("candidates");
  let longest = 0;
  for (let step = 0; step < 60; step++) {
    const begin = performance.now();
    table.scrollTop += 7000;
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    longest = Math.max(longest, performance.now() - begin);
  }
  return longest;
})()"""
# Milliseconds since the navigation, once a chart has been drawn.
OPENED = "document.querySelector('svg.chart') && document.getElementById('main').dataset.opened"


def evaluate(task: Task, candidate: Candidate, speed: float, chance: random.Random) -> Evaluation:
    """As long as a real one, with this speed; some are wrong."""
    if chance.random() < FAIL_SHARE:
        return made_up(task, candidate, chance.choice(FAILURES))
    real = make_evaluation(task, candidate, chance)
    figures = made_up(task, candidate, speed, half_width=0.03).timing
    assert real.timing is not None and figures is not None
    timing = real.timing.model_copy(update={"speedups": figures.speedups})
    return real.model_copy(update={"timing": timing})


def fill(store: Store, task: Task, count: int) -> None:
    chance = random.Random(0)
    start = Path(task.starts["cpp"]).read_text()
    config = RunConfig(backend="cpp", proposers={}, budget=Budget(evaluations=count))
    store.append(RUN, RunStarted(run=RUN, task=task, config=config, at=BEGIN))
    system = prose(4000, chance)
    known: list[tuple[str, float]] = []
    for step in range(count):
        if step % 200 == 0:
            progress(f"step {step:,} of {count:,}")
        candidate = Candidate(source=mutate(start, chance))
        parent, speed = chance.choice(known[-400:]) if known else (None, 0.8)
        who = WHO[2] if chance.random() < MODEL_SHARE else chance.choice(WHO[:2])
        asked = Conversation(
            model="a-model",
            messages=(
                Message(role="system", content=system),
                Message(role="user", content=prose(3000, chance)),
            ),
            response=f"Here it is.\n{candidate.source}",
            usage=Usage(prompt_tokens=1800, completion_tokens=900, dollars=0.004, requests=1),
        )
        proposal = Proposal(
            candidate=candidate,
            proposer=who,
            parents=(parent,) if parent else (),
            summary=f"unroll {step % 100} times and keep two accumulators",
            conversation=asked if who == "model" else None,
        )
        at = BEGIN + timedelta(seconds=SECONDS_PER_STEP * step)
        store.append(
            RUN, StepProposed(step=step, label={"island": step % 3}, proposal=proposal, at=at)
        )
        speed = min(4.0, max(0.2, speed * chance.lognormvariate(0.001, 0.06)))
        evaluation = evaluate(task, candidate, speed, chance)
        if evaluation.ok:
            known.append((candidate.content_hash, speed))
        done = at + timedelta(seconds=SECONDS_PER_STEP)
        store.append(RUN, StepEvaluated(step=step, evaluation=evaluation, seconds=1.9, at=done))
    store.append(RUN, RunEnded(why="the budget is spent", at=done))


def open_report(browser: Browser, url: str, times: int) -> dict[str, float]:
    """The median of several openings, in milliseconds."""
    found: dict[str, list[float]] = {}
    for number in range(times):
        progress(f"opening {number + 1} of {times}")
        page = browser.open(url)
        found.setdefault("open", []).append(float(page.wait_for(OPENED)))
        for name, value in views(page).items():
            found.setdefault(name, []).append(value)
        assert not page.problems, page.problems
        page.close()
    return {name: round(statistics.median(values), 1) for name, values in found.items()}


def views(page: Page) -> dict[str, float]:
    def go(view: str) -> float:
        value: float = page.evaluate(GO.format(address=json.dumps(f"#/run/{RUN}{view}")))
        return value

    found = {"candidates": go("/candidates")}
    found["filter"] = page.evaluate(FILTER)
    page.evaluate("document.getElementById('search').value = ''")
    page.evaluate("document.getElementById('search').dispatchEvent(new Event('input'))")
    found["longest frame of scrolling"] = page.evaluate(SCROLL)
    found |= {name: go(f"/{name}") for name in ("lineage", "archive", "timing")}
    found["a candidate"] = go("/step/7777")
    found["back to the overview"] = go("")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="a folder for the store and the report")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        report = folder / "report.html"
        if not (folder / "runs.sqlite").exists():
            with Store.open(folder / "runs.sqlite", create=True) as store:
                fill(store, find_task(TASK), arguments.candidates)
        begin, used = time.perf_counter(), time.process_time()
        with Store.open(folder / "runs.sqlite") as store, report.open("w") as file:
            write_report([RUN], RunBook(store, words_of), ResultBook([]), file.write, progress)
        writing, used = time.perf_counter() - begin, time.process_time() - used
        with Browser.start() as browser:
            milliseconds = open_report(browser, report.absolute().as_uri(), arguments.times)
        results = {
            "machine": describe_machine(),
            "candidates": arguments.candidates,
            "writing_seconds": round(writing, 1),
            "writing_processor_seconds": round(used, 1),  # beside other work it says more
            "load_average": round(os.getloadavg()[0], 1),
            "report_megabytes": round(report.stat().st_size / 1e6, 1),
            "milliseconds": milliseconds,
        }
    text = json.dumps(results, indent=2)
    print(text)
    if arguments.json:
        arguments.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
