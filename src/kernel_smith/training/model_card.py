"""The card of a trained model: what it is, what it learned from, and how to use it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CARD, DATA_CARD = "README.md", "DATA.md"

_LEARNED = {
    "sft": "It learned to imitate changes that made kernels faster (SFT).",
    "rl": "It made changes to kernels, and learned from what the judge measured (RL).",
    "chooser": "It learned from judged edits which of several named ones to choose, by one letter.",
}
_SERVED = """Serve it with vLLM, SGLang, LMDeploy or transformers; ask it in the way of its data:

    kernel-smith optimize TASK --model NAME@http://HOST:PORT/v1"""
_USE = {
    "sft": _SERVED,
    "rl": _SERVED,
    "chooser": """Name `adapter` of this folder, or the model where it is served:

    kernel-smith optimize TASK --proposer chooser --policy adapter
    kernel-smith optimize TASK --proposer chooser --policy NAME@http://HOST:PORT/v1""",
}
_PATHS = ("data", "model", "output")
_LAST = (
    "loss",
    "eval_loss",
    "best_loss",
    "reward",
    "best_reward",
    "parsed",
    "correct",
    "faster",
    "cheating",
)


def write_model_card(
    final: Path, info: Mapping[str, Any], data: Path, last: Mapping[str, Any]
) -> None:
    """Beside the model, with the card of its data if that has one."""
    theirs = data / "README.md"
    known = theirs.is_file()
    if known:
        shutil.copy(theirs, final / DATA_CARD)
    text = model_card(info, last, data_card=known)
    (final / CARD).write_text(text, encoding="utf-8")


def model_card(info: Mapping[str, Any], last: Mapping[str, Any], *, data_card: bool) -> str:
    """Models and data are called by name: where they lay says nothing to others."""
    settings = info["settings"]
    base = _called(Path(settings["model"]))
    front = ["---", f"base_model: {base}", "library_name: transformers"]
    front += ["pipeline_tag: text-generation", "tags:", "- kernels", f"- {info['kind']}", "---"]
    described = f"described in [{DATA_CARD}]({DATA_CARD})" if data_card else "without a card"
    numbers = {name: f"{last[name]:.4g}" for name in _LAST if name in last}
    chosen = {
        name: f"`{value}`"
        for name, value in settings.items()
        if name not in _PATHS and value is not None
    }
    parts = [
        "\n".join(front),
        f"# {Path(settings['output']).name}\n\nA proposer for kernel-smith: it takes a working "
        f"kernel and makes the next change. {_LEARNED[info['kind']]}",
        f"- Trained from: {base}\n- Data: {Path(settings['data']).name}, {described} "
        f"(sha256 `{info['data_sha256']}`)\n- Steps: {info['steps']}",
        "## What it came to\n\n" + _listed(numbers),
        "## Settings\n\n" + _listed(chosen),
        "## Versions\n\n" + _listed(info["versions"]),
        f"## Use\n\n{_USE[info['kind']]}",
        "## Licence\n\nThat of the model it was trained from; see also that of the data.",
    ]
    return "\n\n".join(parts) + "\n"


def _called(model: Path) -> str:
    """Each training calls its model `final`, so that says nothing alone."""
    return f"{model.parent.name}/{model.name}" if model.name == "final" else model.name


def _listed(named: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in named.items())
