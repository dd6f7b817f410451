"""The pages in a real browser: every view shows what it should, without complaint or stranger."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pytest
from test_dashboard import serving
from viewer_samples import HOSTILE, RUN, events, fill

from kernel_smith.records import RunStarted, StepDropped, StepProposed
from kernel_smith.store import Store
from kernel_smith.testing.browser import Browser, Page
from kernel_smith.viewer.watching import Look, Watching

AXE = Path(__file__).parents[2] / "build/node_modules/axe-core/axe.min.js"
OTHER = "scale-20260103-030405-0001"
READY = "document.getElementById('main').dataset.ready === location.hash"

VIEWS = {
    "runs": "#/",
    "overview": f"#/run/{RUN}",
    "candidates": f"#/run/{RUN}/candidates",
    "lineage": f"#/run/{RUN}/lineage",
    "archive": f"#/run/{RUN}/archive",
    "timing": f"#/run/{RUN}/timing",
    "roofline": f"#/run/{RUN}/roofline",
    "step": f"#/run/{RUN}/step/5",
    "compare": f"#/compare?runs={RUN},{OTHER}",
    "bench": "#/bench/{result}",
    "categories": "#/bench/{result}/categories",
    "problems": "#/bench/{result}/problems",
    "pairs": "#/bench/{result}/compare",
    "row": "#/bench/{result}/row/0",
}

WORDS = {
    "runs": ["Runs", "scale", RUN, "ended", "confirmed", "Benchmark results"],
    "overview": [
        "the speed of eager PyTorch",
        "torch.compile",
        "Best so far",
        "Who made it faster",
        "How far steps came",
        "Who proposed what",
        "model: a-model",
        "Use of the evaluators",
        "the budget is spent",
        "40 evaluations",
    ],
    "candidates": ["40 candidates", "change number 3", "wrong result"],
    "lineage": ["Lineage", "The same as a table"],
    "archive": ["complexity", "technique", "programs"],
    "timing": ["Speed of all candidates", "The fastest, and how certain that is", "Time per call"],
    "roofline": ["Memory", "A made-up GPU", "a large copy: 4.00 TB/s"],
    "step": [
        "Step 5",
        HOSTILE,
        "The verdict",
        "Difference to step",
        "The program",
        "Judge it yourself",
        "--step 5 -o scale_step5.py",
        "kernel-smith evaluate scale scale_step5.py",
        "Kernels on the device",
        "How it came about",
    ],
    "compare": ["2 runs side by side", "Best so far over evaluations", OTHER],
    "bench": ["Leaderboard", "greedy, strict", "islands, strict", "Solved, and at least this fast"],
    "categories": ["Categories", "matmul", "1 of 1 solved"],
    "problems": ["6 rows", "3_matmul", "incorrect"],
    "pairs": ["greedy against islands", "3 problems judged in both", "solved by greedy alone"],
    "row": ["1_softmax", "The winning program", "class ModelNew", "The verdict on the winner"],
}


@pytest.fixture(scope="module")
def page(browser: Browser, report: Path) -> Iterator[Page]:
    page = browser.open(report.as_uri())
    yield page
    page.close()


def show(page: Page, address: str, result: Path | None = None) -> str:
    """Go to a view, and return its text."""
    hash_ = address.replace("{result}", quote(str(result), safe=""))
    page.to_front()
    page.evaluate(f"location.hash = {json.dumps(hash_)}")
    page.wait_for(f"decodeURIComponent(location.hash) === {json.dumps(unquote(hash_))} && {READY}")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)))")
    text: str = page.evaluate("document.getElementById('main').textContent")
    return text


def assert_clean(page: Page) -> None:
    assert not page.problems
    strangers = [each for each in page.requests if not each.startswith(("file:", "data:"))]
    assert not strangers


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_shows_what_it_should(page: Page, result_path: Path, view: str) -> None:
    text = show(page, VIEWS[view], result_path)
    for words in WORDS[view]:
        assert words in text
    assert page.evaluate("document.querySelectorAll('h1').length") == 1
    assert page.evaluate("document.querySelectorAll('main img').length") == 0
    assert_clean(page)


@pytest.fixture(scope="module")
def examined(browser: Browser, report: Path) -> Iterator[Page]:
    """A page with axe-core in it, which finds what people with disabilities would stumble over."""
    if not AXE.exists():
        pytest.skip("no axe-core: npm install --no-save --prefix build axe-core")
    page = browser.open(report.as_uri())
    page.evaluate(AXE.read_text() + "; true")
    yield page
    page.close()


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_serious_is_found_by_axe(examined: Page, result_path: Path, view: str) -> None:
    show(examined, VIEWS[view], result_path)
    assert not serious_findings(examined, "{}")
    examined.prefer(dark=True)
    show(examined, VIEWS[view], result_path)
    try:
        assert not serious_findings(examined, "{runOnly: ['color-contrast']}")  # all that differs
    finally:
        examined.prefer(dark=False)


def serious_findings(page: Page, options: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate(
        f"axe.run(document, {options}).then((all) => all.violations.map((one) => "
        "({id: one.id, impact: one.impact, where: one.nodes.map((n) => n.html)})))"
    )
    return [each for each in found if each["impact"] in ("serious", "critical")]


@pytest.mark.parametrize("view", VIEWS)
def test_no_view_is_wider_than_a_telephone(page: Page, result_path: Path, view: str) -> None:
    page.resize(390, 800)
    try:
        show(page, VIEWS[view], result_path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    finally:
        page.resize(1280, 900)


def test_no_word_is_too_long_for_a_page(
    browser: Browser, write: Callable[..., Path], tmp_path: Path
) -> None:
    """Names of tasks are those of files; reasons repeat what servers and compilers say."""
    word = "long_name_" * 14
    with Store.open(tmp_path / "long.sqlite", create=True) as store:
        for event in events(word):
            match event:
                case RunStarted():
                    task = event.task.model_copy(update={"name": word})
                    store.append(word, event.model_copy(update={"task": task}))
                case StepDropped():
                    store.append(word, event.model_copy(update={"why": word}))
                case _:
                    store.append(word, event)
    page = browser.open(write(tmp_path / "long.sqlite", word).as_uri())
    for view in ("", "/candidates", "/lineage", "/archive", "/timing", "/step/5"):
        show(page, f"#/run/{word}{view}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280, view
    page.close()


def test_the_chart_shows_candidates_the_best_and_who_proposed_it(page: Page) -> None:
    show(page, f"#/run/{RUN}")
    chart = "document.querySelector('.layers svg')"
    label = page.evaluate(f"{chart}.getAttribute('aria-label')")
    assert "after 40 evaluations" in label and "95% interval" in label
    gains = page.evaluate("[...document.querySelectorAll('.layers a')].map((a) => a.ariaLabel)")
    assert any("Step 0 by start" in each for each in gains)
    assert any("At full length" in each for each in gains)
    assert page.evaluate(f"{chart}.querySelectorAll('.band, .line').length") == 2
    page.evaluate("document.getElementById('axis-minutes').click()")
    page.wait_for(f"{chart}?.textContent.includes('minutes')")


def test_gains_are_those_of_two_timed_side_by_side(page: Page) -> None:
    """Figures of different moments differ by more: a step that gained 9% was shown with +87%."""
    text = show(page, f"#/run/{RUN}")
    assert "side by side)" in text
    [step] = page.evaluate(
        "[...document.querySelectorAll('.gains li')].slice(1, 2)"
        ".map((line) => Number(line.querySelector('a').textContent.split(' ')[1]))"
    )
    assert "the speed of step" in show(page, f"#/run/{RUN}/step/{step}")


def test_figures_stay_within_their_charts(page: Page) -> None:
    for view in ("", "/timing"):
        show(page, f"#/run/{RUN}{view}")
        beyond = page.evaluate(
            "[...document.querySelectorAll('svg.chart')].flatMap((chart) => "
            "[...chart.querySelectorAll('text.bar-value, text.row-name')].filter((text) => "
            "text.getBBox().x < 0 || text.getBBox().x + text.getBBox().width > "
            "chart.viewBox.baseVal.width).map((text) => text.textContent))"
        )
        assert beyond == []


def test_the_evaluators_are_never_busier_than_the_run_is_long(page: Page) -> None:
    """Evaluations overlap: one is compiled while another is timed."""
    show(page, "#/")
    found = page.evaluate(
        "import('ks/model.js').then(({ Run }) => {"
        " const spans = [{ begin: 0, end: 6 }, { begin: 4, end: 10 }, { begin: 11, end: 12 }];"
        " const steps = { step: [], ended: [], parent: [] };"
        " const empty = { steps, held: [], best: null, spans };"
        " return [1, 2].map((lanes) => new Run({ ...empty, lanes }).evaluatingSeconds()); })"
    )
    assert found == [11, 13]


def test_durations_are_rounded_as_a_whole(page: Page) -> None:
    show(page, "#/")
    words = page.evaluate(
        "import('ks/format.js').then(({ duration }) => "
        "[9.96, 59.4, 59.7, 119.7, 3599.6, 5400].map(duration))"
    )
    expected = ["10 s", "59 s", "1 min 00 s", "2 min 00 s", "1 h 00 min", "1 h 30 min"]
    assert words == expected


def test_candidates_are_searched_filtered_sorted_and_linked(page: Page) -> None:
    show(page, f"#/run/{RUN}/candidates?by=model&sort=-low")
    rows = "[...document.querySelectorAll('.vbody .vrow')]"
    speeds = page.evaluate(f"{rows}.map((row) => parseFloat(row.children[1].textContent))")
    known = [speed for speed in speeds if speed is not None]
    assert known == sorted(known, reverse=True) and len(known) > 2
    assert set(page.evaluate(f"{rows}.map((row) => row.children[4].textContent)")) == {"model"}
    page.evaluate(
        "search.value = 'number 1'; search.dispatchEvent(new Event('input')); location.hash"
    )
    assert "q=number" in page.evaluate("location.hash")  # it can be sent to somebody
    page.evaluate("document.getElementById('sort-step').click()")
    steps = page.evaluate(f"{rows}.map((row) => Number(row.children[0].textContent))")
    assert steps == sorted(steps) and steps
    page.evaluate(f"{rows}[0].querySelector('a').click()")
    page.wait_for(f"location.hash.endsWith('/step/{steps[0]}') && {READY}")
    assert_clean(page)


def test_csv_and_json_hold_the_rows_that_are_shown(page: Page) -> None:
    show(page, f"#/run/{RUN}/candidates?by=start")
    page.evaluate(
        "window.kept = []; window.made = URL.createObjectURL; "
        "URL.createObjectURL = (blob) => (kept.push(blob), made(blob)); true"
    )
    page.evaluate("csv.click(); json.click(); true")
    table, objects = page.evaluate("Promise.all(kept.map((blob) => blob.text()))")
    page.evaluate("URL.createObjectURL = made; true")
    lines = table.splitlines()
    assert lines[0].startswith("step,candidate,proposer") and len(lines) == 2
    [only] = json.loads(objects)
    assert only["proposer"] == "start" and only["speedup"] == pytest.approx(0.9, rel=0.2)


def test_the_archive_opens_a_field(page: Page) -> None:
    show(page, f"#/run/{RUN}/archive")
    page.evaluate("document.querySelector('.map button').click()")
    text = page.wait_for("document.querySelector('.panel ol')?.textContent")
    assert "Step" in text and "cell=" in page.evaluate("location.hash")
    pressed = "document.querySelector('.map button[aria-pressed=true]') === document.activeElement"
    assert page.evaluate(pressed)


def test_the_tree_shows_more_when_asked(page: Page) -> None:
    show(page, f"#/run/{RUN}/lineage")
    nodes = "document.querySelectorAll('.tree a').length"
    before = page.evaluate(nodes)
    assert before >= 10
    page.evaluate("document.querySelector('.more')?.dispatchEvent(new MouseEvent('click'))")
    assert page.evaluate(nodes) >= before
    assert page.evaluate("document.querySelectorAll('.edge.best').length") >= 1


def test_a_candidate_has_its_diff_prompt_and_worst_element(page: Page, report: Path) -> None:
    models = [event.step for event in events() if _is_model(event)]
    text = show(page, f"#/run/{RUN}/step/{models[0]}")
    assert "Prompt: system" in text and "You write kernels." in text
    assert f"Use {models[0]} threads." in text
    changed = page.evaluate("document.querySelector('.diff .added').textContent")
    assert f"# number {models[0]}" in changed
    assert page.evaluate("document.querySelectorAll('.t-keyword').length") > 5
    text = show(page, f"#/run/{RUN}/step/7")  # wrong
    assert "The worst element" in text and "[3, 17]" in text and "nan" in text


def _is_model(event: object) -> bool:
    return isinstance(event, StepProposed) and event.proposal.proposer == "model"


def test_runs_are_compared_from_the_list(page: Page) -> None:
    show(page, "#/")
    page.evaluate("document.querySelectorAll('.runs input').forEach((box) => box.click())")
    assert page.evaluate("compare.textContent") == "Compare 2 runs"
    page.evaluate("compare.click()")
    page.wait_for("document.querySelectorAll('.chart .line').length === 4")


def test_all_can_be_reached_by_keyboard(page: Page) -> None:
    show(page, f"#/run/{RUN}/candidates")
    focus = "(document.activeElement.id || document.activeElement.textContent)"
    walked = []
    for _ in range(25):
        page.press("Tab")
        walked.append(page.evaluate(focus))
    wanted = ["tab-overview", "tab-candidates", "search", "filter-by", "csv", "candidates"]
    assert [each for each in walked if each in wanted] == wanted
    page.evaluate("candidates.focus()")
    for _ in range(39):
        page.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") == "38"
    page.press("ArrowDown")
    page.press("Enter")
    page.wait_for(f"location.hash.endsWith('/step/39') && {READY}")
    page.press("/")  # there is nothing to search here, and nothing happens
    show(page, f"#/run/{RUN}/candidates")
    page.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    assert_clean(page)


def test_a_place_that_is_not_there_is_said_to_be(page: Page) -> None:
    for address in ("#/run/nobody", f"#/run/{RUN}/step/4000", "#/nowhere/else"):
        assert "This cannot be shown" in show(page, address)
    assert_clean(page)


def test_the_live_page_follows_a_run(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    fill(path, "first")
    with serving(path) as url, Store.open(path) as store:
        page = browser.open(url)
        page.wait_for("document.querySelectorAll('.runs tbody tr').length === 1")
        page.wait_for("document.querySelector('.runs').textContent.includes('tokens')")
        made = list(events(RUN))
        for event in made[:30]:
            store.append(RUN, event)
        page.wait_for("document.querySelectorAll('.runs tbody tr').length === 2")
        page.evaluate(f"location.hash = '#/run/{RUN}'")
        page.wait_for("document.querySelector('.tile strong')?.textContent.length > 0")
        for event in made[30:]:
            store.append(RUN, event)
        page.wait_for("document.querySelector('.tile strong')?.textContent === '40'")
        assert any("after=" in each for each in page.requests), "only what is new is sent"
        anew = browser.open(f"{url}#/run/{RUN}")
        anew.wait_for("document.querySelector('.tile strong')?.textContent === '40'")
        shown = "document.getElementById('main').textContent"
        drawn = "document.querySelector('path.use') && document.getElementById('main')"
        whole = anew.wait_for(f"{drawn}.textContent.includes('confirmed') && {shown}")
        anew.close()
        page.to_front()  # a tab out of sight draws no figures
        page.wait_for(f"{shown} === {json.dumps(whole)}")
        assert page.evaluate("document.getElementById('live').textContent") == "live"
        assert not page.problems
        assert all(each.startswith((url, "data:")) for each in page.requests)
        page.close()


def test_what_changes_before_changes_are_told_is_shown(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Watching.look

    def look_late(watching: Watching) -> Look:
        time.sleep(0.7)  # by now a list that was asked for would have had its costs read
        return look(watching)

    monkeypatch.setattr(Watching, "look", look_late)
    fill(tmp_path / "runs.sqlite", "first")
    with serving(tmp_path / "runs.sqlite") as url:
        page = browser.open(url)
        page.wait_for("document.querySelector('.runs')?.textContent.includes('tokens')")
        page.close()


def test_what_changed_while_the_connection_was_lost_is_shown(
    browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "runs.sqlite"
    fill(path, "first")
    with serving(path) as url:
        page = browser.open(url)
        page.wait_for("document.querySelectorAll('.runs tbody tr').length === 1")
    page.wait_for("document.getElementById('live').textContent.includes('lost')")
    fill(path, "second")
    with serving(path, port=urlsplit(url).port or 0):
        page.wait_for("document.querySelectorAll('.runs tbody tr').length === 2")
        assert page.evaluate("document.getElementById('live').textContent") == "live"
        page.close()
