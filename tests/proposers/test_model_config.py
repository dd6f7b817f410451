"""Which models are asked: from TOML files, command lines and stored runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.proposers.model import make_settings, parse_model, read_settings


def test_a_toml_file_lists_models_with_the_papers_sampling_as_default(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text("""
        mode = "edits"
        max_repairs = 2

        [[models]]
        name = "small"
        base_url = "http://127.0.0.1:8000/v1/"
        weight = 3

        [[models]]
        name = "large"
        base_url = "https://models.example/v1"
        api_key_env = "LARGE_KEY"
        price_prompt = 2.0
        price_completion = 8.0
    """)
    settings = read_settings(path)
    small, large = settings.models
    assert (settings.mode, settings.max_repairs) == ("edits", 2)
    assert (small.temperature, small.top_p, small.weight) == (0.6, 0.95, 3)
    assert small.base_url == "http://127.0.0.1:8000/v1"
    assert large.dollars(1_000_000, 0, 500_000) == pytest.approx(6.0)
    assert make_settings(settings.model_dump(mode="json")) == settings


def test_cached_tokens_have_their_own_price() -> None:
    model = parse_model("m@http://h/v1,price_prompt=2,price_cached=0.5,price_completion=4")
    assert model.dollars(1_000_000, 400_000, 0) == pytest.approx(0.6 * 2 + 0.4 * 0.5)


def test_a_model_can_be_given_on_the_command_line() -> None:
    model = parse_model("org/qwen:7b@http://127.0.0.1:8000/v1,weight=2,api_key_env=MY_KEY")
    assert (model.name, model.base_url) == ("org/qwen:7b", "http://127.0.0.1:8000/v1")
    assert (model.weight, model.api_key_env) == (2.0, "MY_KEY")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("qwen@here", "NAME[@BASE_URL]"),
        ("qwen@http://h/v1,weight", "key=value"),
        ("qwen@http://h/v1,wait=2", "known keys"),
        ("qwen@http://h/v1,weight=heavy", "weight"),
        ("qwen@http://h/v1?key=1", "http://HOST:PORT/v1"),
        ("qwen@http://user:secret@h/v1", "api_key_env"),
        ("qwen@http://h:99999/v1", "base_url: Port out of range"),
        ("qwen@http://[::1/v1", "base_url: Invalid IPv6 URL"),
    ],
)
def test_a_wrong_model_is_refused_with_the_remedy(text: str, word: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_model(text)
    assert word in caught.value.what + caught.value.hint
    assert "secret" not in caught.value.hint


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"models": []},
        {"models": [{"name": "a", "base_url": "ftp://h"}]},
        {"models": [{"name": "a", "base_url": "http://h/v1"}] * 2},
        {"models": [{"name": "a", "base_url": "http://h/v1", "tempo": 1}]},
    ],
)
def test_wrong_settings_are_refused_with_an_example(content: dict[str, object]) -> None:
    with pytest.raises(BadInput) as caught:
        make_settings(content)
    assert "[[models]]" in caught.value.hint


def test_files_that_are_missing_or_not_toml_are_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_settings(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("models = [")
    with pytest.raises(BadInput, match="not TOML"):
        read_settings(tmp_path / "bad.toml")


def test_the_key_is_read_from_the_environment_and_never_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = parse_model("m@http://h/v1,api_key_env=SOME_KEY")
    monkeypatch.delenv("SOME_KEY", raising=False)
    assert model.api_key() is None
    monkeypatch.setenv("SOME_KEY", "sesame")
    assert model.api_key() == "sesame"
    assert "sesame" not in model.model_dump_json()


def test_a_name_alone_is_asked_where_openais_clients_would_ask(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model = parse_model("large,weight=2")
    assert (model.base_url, model.weight) == ("https://api.openai.com/v1", 2)
    assert (model.api_key_env, model.max_tokens_field) == (
        "OPENAI_API_KEY",
        "max_completion_tokens",
    )
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1/")
    assert parse_model("local").api_key_env is None, "a server on this machine may want none"
    monkeypatch.setenv("OPENAI_API_KEY", "sesame")
    path = tmp_path / "models.toml"
    path.write_text('[[models]]\nname = "local"\n')
    (local,) = read_settings(path).models
    assert (local.base_url, local.api_key()) == ("http://127.0.0.1:8000/v1", "sesame")
    assert parse_model("same@http://127.0.0.1:8000/v1").api_key() == "sesame"
    elsewhere = parse_model("other@http://10.0.0.1:8000/v1")
    assert elsewhere.api_key_env is None, "a key goes to the address that it belongs to"


def test_none_in_words_means_that_nothing_is_sent() -> None:
    model = parse_model("m@http://127.0.0.1:8000/v1,temperature=none,top_p=none")
    assert model.temperature is None and model.top_p is None
    assert make_settings({"models": [model.model_dump(mode="json")]}).models[0] == model
