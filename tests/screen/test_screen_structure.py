"""ModelNew, kernels, syntax: what a candidate must have."""

import pytest

from kernel_smith.evaluation.screen import screen
from kernel_smith.records import MEANINGS, Reason, Stage

HELPER = "from kernel_smith.inline import cpp\n"
MODEL = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("def f(:\n", 1),
        ("x = 1\nreturn = 2\n", 2),
        ("x = (\n", 1),
        ("```python\nimport torch\n```\n", 1),
        ("x = 1\n  y = 2\n", 2),
        ("x = '\0'\n", 1),
        ("'\ud800'", 1),
        ("x = " + "-" * 100_000 + "1", 1),
        ("x = " + "(" * 1000 + ")" * 1000, 1),
        ("x = 1" + " + 1" * 100_000, 1),
        ("x = a" + ".b" * 100_000, 1),
    ],
    ids=range(11),
)
def test_what_cannot_be_parsed_is_one_syntax_error(text, line):
    (finding,) = screen(text, "mine.py")
    assert finding.reason is Reason.SYNTAX_ERROR
    assert finding.line == line
    assert finding.message.startswith(f"mine.py:{line}: ")


@pytest.mark.parametrize(
    ("model", "line"),
    [
        ("", 1),
        ("class Model(nn.Module):\n    def forward(self, x): return x", 1),
        ("class modelnew(nn.Module):\n    def forward(self, x): return x", 1),
        ("def build():\n    class ModelNew(nn.Module):\n        def forward(self): ...", 1),
        ("class A:\n    class ModelNew(nn.Module):\n        def forward(self): ...", 1),
        ("\nclass ModelNew(nn.Module): pass", 3),
        ("\nclass ModelNew: pass", 3),
        ("\nclass ModelNew(nn.Module):\n    def forwards(self, x): return x", 3),
        ("\ndef ModelNew(): return nn.Linear(1, 1)", 3),
    ],
)
def test_a_candidate_needs_modelnew_with_forward(model, line):
    findings = screen(f"from torch import nn\n{model}\n{HELPER}cpp('')\n")
    assert [(finding.reason, finding.line) for finding in findings] == [(Reason.NO_MODELNEW, line)]


@pytest.mark.parametrize("base", ["Block", "elsewhere.Block", "nn.Linear", "nn.Module, Mixin"])
def test_another_base_class_may_bring_forward(base):
    text = f"from torch import nn\nclass ModelNew({base}): pass\n{HELPER}cpp('')\n"
    assert screen(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        HELPER,
        "import triton\n",
        "from torch.utils.cpp_extension import load_inline\n",
        "def cpp(text): return text\ncpp('')\n",
        "from elsewhere import cpp\ncpp('')\n",
        "# cpp(SOURCE)\nx = 'cpp(SOURCE)'\n",
        f"{HELPER}if __name__ == '__main__':\n    cpp('')\n",
    ],
)
def test_a_candidate_without_a_kernel_is_refused(text):
    assert [finding.reason for finding in screen(text + MODEL)] == [Reason.NO_KERNEL_SOURCE]


def test_the_main_block_is_read_if_the_file_renames_itself():
    text = (
        f"{HELPER}cpp('')\n{MODEL}__name__ = '__main__'\nif __name__ == '__main__':\n    eval('')\n"
    )
    assert [finding.reason for finding in screen(text)] == [Reason.FORBIDDEN_CALL]


def test_the_else_of_the_main_block_is_read():
    text = f"{HELPER}cpp('')\n{MODEL}if __name__ == '__main__':\n    pass\nelse:\n    eval('')\n"
    assert [finding.reason for finding in screen(text)] == [Reason.FORBIDDEN_CALL]


def test_the_decisive_finding_comes_first_and_then_the_line_decides():
    text = "import torch\nimport ctypes\neval('1')\nopen('f')\ntorch.allclose = print\n"
    findings = screen(text)
    assert [(finding.reason, finding.line) for finding in findings] == [
        (Reason.NO_MODELNEW, 1),
        (Reason.MONKEYPATCH, 5),
        (Reason.FORBIDDEN_CALL, 3),
        (Reason.FORBIDDEN_CALL, 4),
        (Reason.FORBIDDEN_IMPORT, 2),
        (Reason.NO_KERNEL_SOURCE, 1),
    ]
    assert all(finding.message.startswith(f"candidate.py:{finding.line}: ") for finding in findings)
    assert all(MEANINGS[finding.reason].stage is Stage.SCREENED_OUT for finding in findings)
