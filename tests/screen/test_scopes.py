"""What an expression stands for, through aliases and scopes."""

import ast

import pytest

from kernel_smith.evaluation.screen.scopes import Names


def origin_of_last(text: str) -> str | None:
    """The origin of the last expression statement, wherever in the text it stands."""
    tree = ast.parse(text)
    names = Names(tree)
    last = [node for node in ast.walk(tree) if isinstance(node, ast.Expr)][-1]
    return names.origin(last.value)


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("import torch\ntorch.nn", "torch.nn"),
        ("import torch.nn.functional\ntorch.nn.functional", "torch.nn.functional"),
        ("import torch.nn.functional as F\nF.relu", "torch.nn.functional.relu"),
        ("from torch.nn import functional as F\nF.relu", "torch.nn.functional.relu"),
        ("len", "builtins.len"),
        ("unknown", None),
        ("from . import torch\ntorch.x", None),
        ("import torch\nt = torch\nu: object = t\nu.x", "torch.x"),
        ("import torch\na, [b] = 1, [torch]\nb.x", "torch.x"),
        ("import torch\na, *b = torch, 1\na.x", None),
        ("import torch\n(t := torch).x", "torch.x"),
        ("import torch\n[t := torch for _ in 'a']\nt.x", "torch.x"),
        ("t = None\nimport torch as t\nt.x", "torch.x"),
        ("import torch as t\nt = 3\nt.x", None),
        ("import torch as t\nfor t in []: pass\nt.x", None),
        ("import torch as t\nt += 1\nt.x", None),
        ("import torch as t\nwith a as t: pass\nt.x", None),
        ("import torch as t\ntry: pass\nexcept E as t: pass\nt.x", None),
        ("import torch as t\nmatch a:\n  case {'k': 1, **t}: pass\nt.x", None),
        ("import torch as t\nclass t: pass\nt.x", None),
        ("import torch as t\ndef f(t):\n    t.x", None),
        ("import torch as t\ndef f(*, t=1, **k):\n    t.x", None),
        ("import torch as t\ndef f():\n    t = 3\n    t.x", None),
        ("import torch as t\ndef f():\n    t.x", "torch.x"),
        ("import torch as t\nt.x\ndef f(t): pass", "torch.x"),
        ("import torch as t\nclass A:\n    t = 3\n    t.x", None),
        ("import torch as t\nclass A:\n    t = 3\n    def f(self):\n        t.x", "torch.x"),
        ("import torch as t\ndef f():\n    global t\n    t = 3\nt.x", None),
        ("def f():\n    global t\n    import torch as t\ndef g():\n    t.x", "torch.x"),
        (
            "def f():\n    import torch as t\n    def g():\n        nonlocal t\n        t = 3\n"
            "    t.x",
            None,
        ),
        ("import torch\ngetattr(torch, 'a').b", "torch.a.b"),
        ("import torch\ngetattr(torch, name).b", None),
        ("def getattr(a, b): pass\nimport torch\ngetattr(torch, 'a')", None),
        ("import torch\nvars(torch)['a']", "torch.a"),
        ("import torch\ntorch.__dict__['a'].b", "torch.a.b"),
        ("import torch\ntorch.list[0]", None),
        ("import torch\ntorch.make().x", None),
        ("import sys\nsys.modules['torch'].x", "torch.x"),
        ("import sys\nsys.modules[name].x", None),
    ],
)
def test_origins(text, origin):
    assert origin_of_last(text) == origin


def test_a_comprehension_has_names_of_its_own():
    tree = ast.parse("import torch as t\n[t.x for t in []]\nt.y")
    names = Names(tree)
    origins = {
        node.attr: names.origin(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)
    }
    assert origins == {"x": None, "y": "torch.y"}
