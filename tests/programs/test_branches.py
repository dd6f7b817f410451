"""What the preprocessor leaves out, checked against what a real one does."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from datetime import UTC, datetime

import pytest

from kernel_smith.evaluation.judge.evidence.environment import describe_machine
from kernel_smith.inline.toolchain import find_toolchain
from kernel_smith.programs.branches import Defined, macros_of, without_dead_branches
from kernel_smith.records import Environment, Evaluation, Reason, Stage

WIDE: Defined = {"__AVX512F__": True, "__AVX2__": True, "__ARM_NEON": False}

NESTED = """
#if defined(__AVX512F__) && !defined(__ARM_NEON)
wide
#ifdef __ARM_NEON
never
#elif SOMETHING > 3
perhaps
#else
perhaps not
#endif
#elif defined __AVX2__
narrow
#else
plain
#endif
after
"""


def lines(code: str, defined: Defined) -> list[str]:
    shown = without_dead_branches(code, defined)
    assert len(shown) == len(code) and shown.count("\n") == code.count("\n")
    return [line for line in shown.splitlines() if line.strip() and "#" not in line]


def test_branches_that_are_not_taken_are_blanked_and_doubtful_ones_stay() -> None:
    assert lines(NESTED, WIDE) == ["wide", "perhaps", "perhaps not", "after"]
    assert lines(NESTED, {}) == [
        line for line in NESTED.splitlines() if line and "#" not in line
    ], "nothing is known"
    narrow = WIDE | {"__AVX512F__": False}
    assert lines(NESTED, narrow) == ["narrow", "after"]
    assert lines(NESTED, {"__AVX512F__": False}) == ["narrow", "plain", "after"]


@pytest.mark.parametrize(
    "code",
    [
        "#if defined(__AVX512F__) + 1\na\n#else\nb\n#endif",
        "#if __AVX512F__ > 1\na\n#else\nb\n#endif",
        "#undef __AVX512F__\n#ifdef __AVX512F__\na\n#else\nb\n#endif",
        "#if (\na\n#else\nb\n#endif",
        "#endif\n#else\na\nb",
    ],
)
def test_what_cannot_be_told_leaves_all_in(code: str) -> None:
    assert lines(code, WIDE) == ["a", "b"]


def test_branches_are_those_of_a_real_preprocessor() -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++")
    chance = random.Random(3)
    names = ["KS_YES", "KS_NO", "KS_OTHER"]
    defined = {"KS_YES": True, "KS_NO": False}

    def condition(depth: int = 0) -> str:
        kind = chance.choice(["name", "name", "not", "and", "or"] if depth < 3 else ["name"])
        if kind == "name":
            name = chance.choice(names)
            return chance.choice([f"defined({name})", f"defined {name}", name])
        inner = condition(depth + 1)
        if kind == "not":
            return f"!({inner})"
        return f"({inner} {'&&' if kind == 'and' else '||'} {condition(depth + 1)})"

    def text(depth: int = 0) -> str:
        parts = []
        for _ in range(chance.randint(1, 3)):
            parts.append(f"line{chance.randrange(10**9)}\n")
            if depth < 3:
                parts.append(f"#if {condition()}\n{text(depth + 1)}")
                for _ in range(chance.randint(0, 2)):
                    parts.append(f"#elif {condition()}\n{text(depth + 1)}")
                if chance.random() < 0.5:
                    parts.append(f"#else\n{text(depth + 1)}")
                parts.append("#endif\n")
        return "".join(parts)

    for _ in range(12):
        code = text()
        kept = {line for line in lines(code, defined) if line.startswith("line")}
        seen = []
        for other in ([], ["-DKS_OTHER"]):
            done = subprocess.run(
                [compiler, "-E", "-P", "-x", "c++", "-DKS_YES", *other, "-"],
                input=code,
                capture_output=True,
                text=True,
                check=True,
            )
            seen.append(set(re.findall(r"line\d+", done.stdout)))
        assert seen[0] | seen[1] <= kept
        if "KS_OTHER" not in code:
            assert kept == seen[0]
        exactly = without_dead_branches(code, defined | {"KS_OTHER": False})
        assert set(re.findall(r"^line\d+", exactly, re.M)) == seen[0]


def judged(machine: str, instruction_set: str) -> Evaluation:
    unsaid = dict.fromkeys(("processor", "kernel", "python", "torch", "kernel_smith"), "")
    return judged_in(
        Environment(
            machine=machine, compiler="g++ 12.2.0", instruction_set=instruction_set, **unsaid
        )
    )


def judged_in(environment: Environment) -> Evaluation:
    return Evaluation(
        task="t",
        task_hash="",
        candidate_hash="",
        backend="cpp",
        stage=Stage.LOAD_ERROR,
        reason=Reason.LOAD_CRASHED,
        environment=environment,
        created_at=datetime.now(UTC),
    )


def test_macros_are_those_of_the_machine_that_judged() -> None:
    x86 = macros_of(judged("x86_64", "sse4_2 avx fma avx2"), "")
    assert x86["__AVX2__"] and x86["__x86_64__"]
    assert not x86["__AVX512F__"] and not x86["__ARM_NEON"] and not x86["__clang__"]
    arm = macros_of(judged("aarch64", "asimd"), "")
    assert arm["__ARM_NEON"] and arm["__aarch64__"] and not arm["__AVX2__"]
    assert macros_of(judged("x86_64", ""), "") == {}, "an older record, or none"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ('flags=["-mavx2"]', False),
        ('"""\n#pragma GCC target("avx2")\n"""', False),
        ('flags=["-mprefer-vector-width=256"]', True),
        ('"""\n#pragma GCC target("prefer-vector-width=512")\n"""', True),
    ],
)
def test_a_program_that_chooses_its_target_is_not_second_guessed(source: str, told: bool) -> None:
    assert bool(macros_of(judged("x86_64", "avx avx2"), source)) is told


def test_macros_are_those_that_this_machines_compiler_defines() -> None:
    known = macros_of(judged_in(describe_machine()), "")
    toolchain = find_toolchain("cpp")
    command = [*toolchain.command_prefix, "-dM", "-E", "-x", "c++", "/dev/null"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    defined = set(re.findall(r"#define (\w+) ", done.stdout))
    assert {name for name, value in known.items() if value} <= defined
    assert not {name for name, value in known.items() if not value} & defined
    assert known
