"""Settings: files, what is given on top of them, and what is refused with which words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from kernel_smith.errors import BadInput
from kernel_smith.training.config import (
    Lora,
    RewardSettings,
    RlSettings,
    SftSettings,
    read_settings,
)

GIVEN: dict[str, Any] = {"data": Path("d"), "model": Path("m"), "output": Path("o")}
DOCUMENT = Path(__file__).parents[2] / "docs" / "training.md"
EXAMPLES = Path(__file__).parents[2] / "examples" / "training"


def test_the_defaults_are_those_of_the_paper() -> None:
    settings = read_settings(RlSettings, None, GIVEN)
    assert (settings.samples, settings.temperature, settings.top_p) == (8, 0.6, 0.95)
    assert settings.advantage == "group"


def test_what_is_given_wins_over_the_file_and_is_joined_with_its_parts(tmp_path: Path) -> None:
    file = tmp_path / "rl.toml"
    file.write_text('steps = 7\nseed = 3\n[lora]\nrank = 4\ntargets = ["q_proj"]\n')
    settings = read_settings(RlSettings, file, {**GIVEN, "steps": 9, "lora": {"rank": 8}})
    assert (settings.steps, settings.seed) == (9, 3)
    assert settings.lora == Lora(rank=8, targets=("q_proj",))


def test_all_weights_are_trained_where_lora_is_false(tmp_path: Path) -> None:
    file = tmp_path / "sft.toml"
    file.write_text("lora = false\n")
    assert read_settings(SftSettings, file, GIVEN).lora is False
    assert read_settings(SftSettings, file, {**GIVEN, "lora": {"rank": 2}}).lora == Lora(rank=2)


@pytest.mark.parametrize(
    ("text", "complaint", "remedy"),
    [
        ("learning_rat = 1.0", "no setting `learning_rat`", "did you mean `learning_rate`?"),
        ("[reward]\nprofilin = 1.0", "[reward]: there is no setting", "did you mean `profiling`?"),
        ("zzz = 1", "no setting `zzz`", "the settings are: advantage"),
        ("steps = 0", "`steps`", "docs/training.md"),
        ("micro_batch = 5", "`micro_batch` (5) must divide", "docs/training.md"),
        ("max_new_tokens = 99999", "less than `sequence_length`", "docs/training.md"),
        ("[reward]\nlow = 9.5", "must be less than `high`", "docs/training.md"),
        ("[reward]\ncheating = 1.0", "cheating", "docs/training.md"),
        ("steps = nan", "`steps`", "docs/training.md"),
        ("steps =", "is no TOML", "mend that line"),
    ],
)
def test_bad_settings_are_refused_with_a_remedy(
    text: str, complaint: str, remedy: str, tmp_path: Path
) -> None:
    file = tmp_path / "rl.toml"
    file.write_text(text)
    with pytest.raises(BadInput) as caught:
        read_settings(RlSettings, file, GIVEN)
    assert complaint in caught.value.what
    assert remedy in caught.value.hint


def test_what_is_missing_is_named() -> None:
    with pytest.raises(BadInput, match="`model` is missing") as caught:
        read_settings(SftSettings, None, {"data": Path("d"), "output": Path("o")})
    assert "--model" in caught.value.hint
    with pytest.raises(BadInput, match="cannot be read"):
        read_settings(SftSettings, Path("nowhere.toml"), GIVEN)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_the_examples_can_be_read(path: Path) -> None:
    kind = SftSettings if path.stem.startswith("sft") else RlSettings
    assert read_settings(kind, path, GIVEN).steps > 0


@pytest.mark.parametrize("kind", [SftSettings, RlSettings, Lora, RewardSettings])
def test_every_setting_is_documented(kind: type[BaseModel]) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert [name for name in kind.model_fields if f"`{name}" not in text] == []
