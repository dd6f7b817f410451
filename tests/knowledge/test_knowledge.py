"""The guides: every backend has one, and a task gets what concerns it and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.errors import BadInput
from kernel_smith.knowledge import all_guides, find_topic, sections_for
from kernel_smith.knowledge.measured import all_measured, figures_about, sections_of
from kernel_smith.proposers.mutator.registry import EDITS
from kernel_smith.records import Task
from kernel_smith.tasks import SUITES, builtin_tasks

BACKENDS = ("cpp", "cuda", "hip", "maca", "triton")
ARM = "Processor: ARM implementer 0x41 part 0xd0c, 2 cores (aarch64)."
H200 = "Processor: Intel (x86_64). GPU: NVIDIA H200, compute capability 9.0."
FAMILIES = sorted({task.family for suite in SUITES for task in builtin_tasks(suite)})


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_has_a_guide_that_says_what_bounds_and_what_pays(backend: str) -> None:
    titles = [section.title for section in find_topic(backend).sections]
    assert titles[0] == "What bounds a kernel"
    assert titles[1].startswith("Which moves pay")
    assert "Pitfalls" in titles


def test_guides_are_short_and_their_families_exist() -> None:
    for guide in all_guides():
        assert len(guide.markdown) < 6000, guide.topic
        for section in guide.sections:
            assert section.text, (guide.topic, section.title)
            assert set(section.families) <= set(FAMILIES), (guide.topic, section.title)


@given(st.sampled_from(FAMILIES), st.sampled_from(BACKENDS), st.sampled_from([ARM, H200]))
def test_a_task_gets_what_concerns_it_and_nothing_else(
    family: str, backend: str, hardware: str
) -> None:
    found = sections_for(Task(name="t", source="", family=family), backend, hardware)
    assert found[0] == find_topic(backend).sections[0]
    assert all(section.topic.partition("_")[0] == backend for section in found)
    assert all(not part.families or family in part.families for part in found)
    assert sum(len(section.markdown) for section in found) < 12000


def test_the_machine_decides_about_device_guides_and_figures() -> None:
    task = Task(name="t", source="", family="elementwise")
    here = {section.title for section in sections_for(task, "cpp", ARM)}
    there = {section.title for section in sections_for(task, "cpp", H200)}
    assert {"What aarch64 offers", "Measured: which edits paid"} <= here
    assert "What x86-64 offers" in there
    assert not any(title.startswith("Measured") for title in there), "we have none for it"


def test_figures_name_their_machine_and_are_what_they_say() -> None:
    edits = {edit.name for edit in EDITS}
    for measured in all_measured():
        for section in sections_of(measured):
            assert measured.machine in section.text
        for move in measured.moves:
            assert move.name.startswith("another ") or move.name in edits, "to be done today"
            assert move.faster >= 0 and move.faster + move.slower <= move.tried
            assert (move.gain is None) == (move.faster == 0)
            assert move.gain is None or move.gain > 1
        for series in measured.series:
            assert series.eager[0] <= series.eager[1] and len(series.programs) > 1
    assert figures_about(find_topic("cpp")) and figures_about(find_topic("cpp_aarch64"))
    assert figures_about(find_topic("cpp_x86-64")) == ()


def test_an_unknown_topic_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(BadInput, match="'fortran'") as caught:
        find_topic("fortran")
    assert "cpp" in caught.value.hint
