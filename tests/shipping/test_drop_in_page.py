"""The examples of docs/drop-in.md, run in their order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from shipping_samples import NORM_KERNEL

from kernel_smith.shipping.runtime.spec import execute

PAGE = Path(__file__).parents[2] / "docs" / "drop-in.md"
QUICKLY = f"evaluations=1, proposers=['mutator'], starts=[{NORM_KERNEL!r}], progress=False"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the kernel is slower")  # nothing here is about speed
@pytest.mark.usefixtures("quick_runs")
def test_the_page_tells_the_truth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERNEL_SMITH_STORE", str(tmp_path / "runs.sqlite"))
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    text = "".join(examples)
    assert text.count("minutes=10") == 1
    execute(text.replace("minutes=10", QUICKLY), "drop_in_page")
    found, counts, patched, unpatched, called, captured = capsys.readouterr().out.splitlines()
    assert found.startswith("Optimized(rmsnorm on cpp, ")
    assert f"print(fast.counts)  # {counts}\n" in text
    assert f"print(found.patch(model))  # {patched}\n" in text
    assert f"print(found.unpatch(model))  # {unpatched}\n" in text
    assert f"# {re.sub('[0-9]+[.][0-9]+', '...', called)}\n" in text
    assert f"# {captured}\n" in text
