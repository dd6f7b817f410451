"""Which problems a suite has, how they are chosen, and that none is lost without a word."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.bench.suites import Selection, find_problems
from kernel_smith.bench.told import programs_for, unused_programs
from kernel_smith.errors import BadInput
from kernel_smith.records import Precision

TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.{function}(x)

def get_inputs():
    return [torch.randn(4)]
"""


def write(path: Path, function: str = "relu") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TASK.format(function=function))
    return path


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """As KernelBench has it, with fewer problems."""
    root = tmp_path / "checkout"
    for level, names in (
        ("level1", ("2_b", "10_c", "1_a")),
        ("level2", ("1_d",)),
        ("level4", ("1_e",)),
    ):
        for name in names:
            write(root / "KernelBench" / level / f"{name}.py")
    write(root / "KernelBench" / "level1" / "3_s.py", "cumsum")
    write(root / "scripts" / "tool.py")
    return root


def names(*words: object, **chosen: Any) -> list[str]:
    return [each.name for each in find_problems([str(w) for w in words], Selection(**chosen))]


def test_a_checkout_has_the_levels_of_the_paper_in_their_order(checkout: Path) -> None:
    all_of = ["level1/1_a", "level1/2_b", "level1/3_s", "level1/10_c", "level2/1_d"]
    assert names(checkout) == names(checkout / "KernelBench") == all_of
    assert names(checkout / "KernelBench" / "level4") == ["level4/1_e"]
    level, file = checkout / "KernelBench" / "level1", "KernelBench/level1/2_b.py"
    assert names(level) == all_of[:4]
    assert names(checkout / file) == ["level1/2_b"]
    assert names(checkout / "KernelBench" / "level1" / "1*.py") == ["level1/10_c", "level1/1_a"]


def test_problems_are_chosen_by_level_category_and_name(checkout: Path) -> None:
    assert names(checkout, levels=("2",)) == names(checkout, levels=("level2",)) == ["level2/1_d"]
    assert names(checkout, categories=("scan",)) == ["level1/3_s"]
    assert names(checkout, globs=("1_*",)) == ["level1/1_a", "level2/1_d"]
    assert names(checkout, globs=("level1/1*",), categories=("act*",)) == [
        "level1/1_a",
        "level1/10_c",
    ]
    with pytest.raises(BadInput, match="none of the 5 problems"):
        names(checkout, levels=("9",))


def test_a_sample_is_drawn_per_level_and_is_always_the_same(checkout: Path) -> None:
    drawn = names(checkout, sample=2)
    assert [name.partition("/")[0] for name in drawn] == ["level1", "level1", "level2"]
    assert names(checkout, sample=2) == drawn
    assert any(names(checkout, sample=2, sample_seed=seed) != drawn for seed in range(1, 9))


def test_a_folder_has_a_problem_per_file_or_per_task_folder(tmp_path: Path) -> None:
    write(tmp_path / "suite" / "one.py")
    write(tmp_path / "suite" / "two" / "task.py")
    (tmp_path / "suite" / "two" / "start_cpp.py").write_text("class ModelNew: ...")
    write(tmp_path / "suite" / ".hidden" / "three.py")
    assert names(tmp_path / "suite") == ["one", "two"]


def test_a_folder_that_is_removed_meanwhile_is_no_defect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "1_a.py")
    gone = tmp_path / "z_gone"
    gone.mkdir()
    listing = os.scandir

    def removing(path: Any) -> Any:
        if Path(path) == gone:
            gone.rmdir()
        return listing(path)

    monkeypatch.setattr(os, "scandir", removing)
    assert names(tmp_path) == ["1_a"]
    assert not gone.exists()


def test_a_file_that_cannot_be_read_is_a_problem_that_is_broken(tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    write(folder / "good.py")
    (folder / "bad.py").write_text("class Model(:")
    (folder / "helper.py").write_text("x = 1\n")
    found = {each.name: each for each in find_problems([str(folder)], Selection())}
    assert found["good"].task is not None
    assert found["bad"].why_broken.startswith("bad.py:1: ")
    assert "no `class Model`" in found["helper"].why_broken


def test_a_name_that_is_no_text_is_written_down_with_replacements(tmp_path: Path) -> None:
    write(tmp_path / os.fsdecode(b"1_\xff.py"))
    (problem,) = find_problems([str(tmp_path)], Selection())
    assert problem.name == "1_\N{REPLACEMENT CHARACTER}"
    assert "cannot be printed" in problem.why_broken
    assert problem.why_broken.encode()


def test_builtin_suites_go_by_their_names_and_paths_that_are_not_there_are_told() -> None:
    assert "row_softmax" in names("cpu")
    with pytest.raises(BadInput, match="no such suite"):
        names("nowhere")


def test_a_problem_at_two_precisions_is_two(tmp_path: Path) -> None:
    write(tmp_path / "one.py")
    found = find_problems([str(tmp_path / "one.py")], Selection(), ["strict", "tf32"])
    assert [each.precision for each in found] == [Precision.STRICT, Precision.TF32]
    assert len({each.task.content_hash for each in found if each.task}) == 2
    with pytest.raises(BadInput, match="no precision is called"):
        find_problems([str(tmp_path / "one.py")], Selection(), ["fp32"])


def test_a_problem_that_is_named_twice_is_one_and_two_of_a_name_are_told_apart(
    tmp_path: Path,
) -> None:
    first, second = write(tmp_path / "a" / "one.py"), write(tmp_path / "b" / "one.py", "tanh")
    assert names(first, first.parent) == ["one"]
    assert names(first.parent, second.parent) == ["one", "b/one"]


# ---------------------------------------------------------------- flashinfer-bench

DEFINITION: dict[str, Any] = {
    "name": "scaled",
    "op_type": "rmsnorm",
    "axes": {"N": {"type": "var"}, "D": {"type": "const", "value": 8}},
    "inputs": {
        "x": {"shape": ["N", "D"], "dtype": "bfloat16"},
        "eps": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["N", "D"], "dtype": "bfloat16"}},
    "reference": "import torch\n\ndef run(x, eps):\n    return x * eps\n",
}


def data_set(folder: Path, definition: dict[str, Any], sizes: tuple[int, ...], kind: str) -> Path:
    (folder / "definitions" / "rmsnorm").mkdir(parents=True)
    (folder / "workloads" / "rmsnorm").mkdir(parents=True)
    (folder / "definitions" / "rmsnorm" / "scaled.json").write_text(json.dumps(definition))
    lines = [
        json.dumps(
            {
                "definition": "scaled",
                "workload": {
                    "uuid": str(size),
                    "axes": {"N": size},
                    "inputs": {"x": {"type": kind}, "eps": {"type": "scalar", "value": 0.5}},
                },
            }
        )
        for size in sizes
    ]
    (folder / "workloads" / "rmsnorm" / "scaled.jsonl").write_text("\n".join(lines))
    return folder


def test_definitions_become_tasks_with_a_few_of_their_workloads(tmp_path: Path) -> None:
    folder = data_set(tmp_path / "trace", DEFINITION, (3, 5, 5, 100, 7, 9), "random")
    (found,) = find_problems([str(folder)], Selection())
    assert (found.name, found.level, found.task is not None) == ("scaled", "rmsnorm", True)
    assert found.task is not None
    sizes = [workload.params for workload in found.task.workloads]
    assert sizes == [{"N": 3, "eps": 0.5}, {"N": 7, "eps": 0.5}, {"N": 100, "eps": 0.5}]
    assert "torch.randn(N, 8).to(torch.bfloat16), eps]" in found.task.source


@pytest.mark.parametrize(
    ("change", "kind", "why"),
    [
        ({}, "safetensors", "files of tensors"),
        ({"reference": "def run(:"}, "random", "not valid Python"),
        ({"inputs": {"x": {"shape": ["N"], "dtype": "int32"}}}, "random", "no stated range"),
        ({"axes": {"a b": {"type": "var"}}}, "random", "no name in Python"),
        ({"axes": None}, "random", "not a definition"),
    ],
)
def test_a_definition_that_cannot_be_drawn_is_listed_with_the_reason(
    tmp_path: Path, change: dict[str, Any], kind: str, why: str
) -> None:
    folder = data_set(tmp_path / "trace", DEFINITION | change, (3,), kind)
    (found,) = find_problems([str(folder)], Selection())
    assert found.task is None
    assert why in found.why_broken


# ---------------------------------------------------------------- programs from elsewhere


@pytest.mark.parametrize(
    "place",
    [
        "level1/2_b.py",
        "2_b.py",
        "level1/2_b/1_x.py",
        "2_b/kernel.py",
        "level_1_problem_2_sample_0_kernel.py",
    ],
)
def test_programs_are_found_by_their_place_or_name(
    checkout: Path, tmp_path: Path, place: str
) -> None:
    folder = tmp_path / "programs"
    (folder / place).parent.mkdir(parents=True, exist_ok=True)
    (folder / place).write_text("class ModelNew: ...")
    (folder / "strange.py").write_text("class ModelNew: ...")
    problems = find_problems([str(checkout)], Selection())
    found = {each.name: programs_for(folder, each, "triton") for each in problems}
    assert [name for name, programs in found.items() if programs] == ["level1/2_b"]
    (program,) = found["level1/2_b"]
    assert (program.backend, program.name) == ("triton", place)
    assert unused_programs(folder, problems) == [folder / "strange.py"]


def test_programs_are_told_in_the_order_of_their_numbers(checkout: Path, tmp_path: Path) -> None:
    folder = tmp_path / "programs" / "1_d"
    folder.mkdir(parents=True)
    for name in ("10_last.py", "2_second.py", "1_first.py"):
        (folder / name).write_text(f"# {name}")
    (problem,) = find_problems([str(checkout)], Selection(globs=("1_d",)))
    told = [program.source for program in programs_for(folder.parent, problem, "cpp")]
    assert told == ["# 1_first.py", "# 2_second.py", "# 10_last.py"]


def test_a_program_that_is_no_text_is_refused_by_name(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "1_d.py").write_bytes(b"\xff\xfe")
    (problem,) = find_problems([str(checkout)], Selection(globs=("1_d",)))
    with pytest.raises(BadInput, match="not UTF-8"):
        programs_for(tmp_path, problem, "cpp")
