"""What an H200 measured, and is kept in `results/`, as its reader sees it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from kernel_smith.records import (
    Budget,
    Candidate,
    Evaluation,
    Proposal,
    RunConfig,
    RunEnded,
    RunStarted,
    StepEvaluated,
    StepProposed,
)
from kernel_smith.store import Store
from kernel_smith.tasks import find_task
from kernel_smith.testing.browser import Browser

RESULTS = Path(__file__).parents[2] / "results"
TASK = "cross_entropy_vocab"
RUN = "cross-entropy-on-h200"
COMPILED = RESULTS / f"h200/triton/{TASK}"
TOLD = RESULTS / f"h200/told/{TASK}"
MATMUL = RESULTS / "kernelbench/h200/winners/told-tf32/level2/37_Matmul_Swish_Sum_GroupNorm"
MAIN = "document.getElementById('main').textContent"


def fill(store: Store, run: str, told: list[tuple[str, str, Evaluation]]) -> None:
    """Make a run of real evaluations: (who proposed it, the program, what was measured)."""
    begin = told[0][2].created_at
    config = RunConfig(backend="triton", proposers={}, budget=Budget(evaluations=len(told)))
    store.append(run, RunStarted(run=run, task=find_task(TASK), config=config, at=begin))
    for step, (who, source, evaluation) in enumerate(told):
        proposal = Proposal(
            candidate=Candidate(source=source, backend="triton"), proposer=who, summary=who
        )
        at = begin + timedelta(seconds=2 * step)
        store.append(run, StepProposed(step=step, proposal=proposal, at=at))
        found = evaluation.model_copy(update={"candidate_hash": proposal.candidate.content_hash})
        store.append(run, StepEvaluated(step=step, evaluation=found, seconds=2.0, at=at))
    store.append(run, RunEnded(why="the budget is spent", at=at))


def read(path: Path) -> Evaluation:
    return Evaluation.model_validate_json(path.read_text())


@pytest.fixture(scope="module")
def gpu_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gpu") / "runs.sqlite"
    winner = max(TOLD.glob("*.py"))
    compiled, told = read(COMPILED / "evaluation.json"), read(TOLD / "evaluation.json")
    with Store.open(path, create=True) as store:
        fill(
            store,
            RUN,
            [
                ("seed", (COMPILED / "kernel.py").read_text(), compiled),
                ("outside", winner.read_text(), told),
            ],
        )
        product = read(MATMUL.with_suffix(".json"))
        source = MATMUL.with_suffix(".py").read_text()
        fill(store, "a-product", [("outside", source, product)])
    return path


def test_the_limits_of_every_workload(
    gpu_store: Path, write: Callable[..., Path], browser: Browser
) -> None:
    page = browser.open(f"{write(gpu_store, RUN).as_uri()}#/run/{RUN}/roofline")
    page.wait_for(f"{MAIN}.includes('How near to the limit')")
    text = page.evaluate(MAIN)
    told = read(TOLD / "evaluation.json")
    assert "NVIDIA H200 can do at best" in text and "eager PyTorch" in text
    shares = {each.workload: f"{100 * each.share:.0f}%" for each in told.rooflines}
    rows = page.evaluate(
        "[...document.querySelector('main table').rows]"
        ".map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    shown = {row[0]: row for row in rows if row[0] in shares}
    assert shown.keys() == shares.keys()
    assert shown["llama2"][1:3] == ["memory bandwidth", shares["llama2"]]
    # The workload nearest to its limit comes first; any other can be chosen, and has an address.
    chosen = max(told.rooflines, key=lambda each: each.share).workload
    assert page.evaluate("document.getElementById('workload').value") == chosen
    page.evaluate(
        "document.getElementById('workload').value = 'small';"
        "document.getElementById('workload').dispatchEvent(new Event('change'))"
    )
    page.wait_for(f"{MAIN}.includes('on workload small')")
    assert page.evaluate("location.hash").endswith("workload=small")
    page.wait_for("document.querySelectorAll('main svg a circle').length === 2")
    assert not page.problems
    page.close()


def test_a_product_under_the_roof_of_its_precision(
    gpu_store: Path, write: Callable[..., Path], browser: Browser
) -> None:
    """The roof is that of TF32, which the program uses, and there is no other."""
    page = browser.open(f"{write(gpu_store, 'a-product').as_uri()}#/run/a-product/roofline")
    page.wait_for("document.querySelectorAll('main svg path.roof').length")
    names = page.evaluate(
        "[...document.querySelectorAll('main svg text.reference-name')].map((n) => n.textContent)"
    )
    assert [name.partition(":")[0] for name in names] == [
        "tf32",
        "a large copy",
        "torch.compile",
        "eager PyTorch",
    ]
    dot, roof = page.evaluate(
        "['main svg a circle', 'main svg path.roof'].map((name) =>"
        " document.querySelector(name).getBoundingClientRect().top)"
    )
    assert dot > roof  # below it
    assert json.loads(MATMUL.with_suffix(".json").read_text())["rooflines"][0]["share"] < 1
    assert not page.problems
    page.close()
