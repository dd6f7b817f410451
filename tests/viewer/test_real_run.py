"""A run with a real judge, real C++ kernels and a scripted model, as its reader sees it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_smith.evaluation.engines import LocalEngine, open_engine
from kernel_smith.records import Budget, Candidate, Options, Task
from kernel_smith.runs.config import configure
from kernel_smith.runs.run import Run
from kernel_smith.store import Store
from kernel_smith.testing.browser import Browser
from kernel_smith.testing.openai_server import OpenAIServer, Reply

EVERY_OTHER_VIEW = {
    "lineage": ["Each dot is a step", "The same as a table"],
    "archive": ["complexity", "technique", "2 programs"],
    "timing": ["Speed of all candidates", "Time per call of the fastest"],
    "roofline": ["this run has none of it"],
}


@pytest.fixture
def finished(
    tmp_path: Path,
    small_task: Task,
    honest_source: str,
    wrong_source: str,
    quick: Options,
    lanes_share_the_judge: None,
) -> tuple[Path, str]:
    """A store, and the run in it: it ends after three evaluations."""
    path = tmp_path / "runs.sqlite"
    right = honest_source.replace("x[i] > 0", "x[i] >= 0")
    answers = [f"```python\n{source}\n```" for source in (wrong_source, right)]
    with OpenAIServer([Reply(each) for each in answers]) as server:
        models = {"models": [{"name": "scripted", "base_url": server.base_url, "retries": 0}]}
        config = configure(
            small_task,
            "cpp",
            proposers=["model"],
            models=models,
            rebudget=lambda budget: Budget(evaluations=3),
            starts=[Candidate(source=honest_source, name="start.py")],
        ).model_copy(update={"options": quick, "confirmation": quick})
        with (
            Store.open(path, create=True) as store,
            Run.start(store, small_task, config) as run,
            open_engine(None, 1) as engine,
        ):
            run.search(engine)
            return path, run.state.run


def test_a_real_run_can_be_read(
    finished: tuple[Path, str], write: Callable[..., Path], browser: Browser, engine: LocalEngine
) -> None:
    store, run = finished
    page = browser.open(write(store, run).as_uri())
    main = "document.getElementById('main').textContent"
    page.wait_for(f"{main}.includes('Best so far')")
    text = page.evaluate(main)
    assert "shifted_relu" in text and "the speed of eager PyTorch" in text
    page.evaluate(f"location.hash = '#/run/{run}/step/0'")
    page.wait_for(f"{main}.includes('The program')")
    text = page.evaluate(main)
    assert "ok: correct" in text and "shifted_relu" in text and "Workload by workload" in text
    for view, words in EVERY_OTHER_VIEW.items():
        page.evaluate(f"location.hash = '#/run/{run}/{view}'")
        page.wait_for(f"{main}.includes({json.dumps(words[0])})")
        text = page.evaluate(main)
        assert all(each in text for each in words), view
    models = page.evaluate(f"location.hash = '#/run/{run}/candidates?by=model'") and page.wait_for(
        "[...document.querySelectorAll('.vbody a')].map((link) => link.textContent)"
    )
    page.evaluate(f"location.hash = '#/run/{run}/step/{models[0]}'")
    page.wait_for(f"{main}.includes('Prompt and answer')")
    assert "def forward(self, x):" in page.evaluate(main)
    assert not page.problems
    page.close()
