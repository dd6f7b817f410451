"""`kernel-smith report`: one file, with everything in it, that asks nobody for anything."""

from __future__ import annotations

import base64
import gzip
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from viewer_samples import HOSTILE, RUN, fill

from kernel_smith.cli.main import main
from kernel_smith.viewer.page_files import modules, page_files

Answer = tuple[int, str, str]
Cli = Callable[..., Answer]


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["kernel-smith", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        return int(caught.value.code or 0), *capfd.readouterr()

    return run


def parts_of(path: Path) -> dict[str, Any]:
    found = re.findall(r'data-part="([^"]+)">([^<]+)</script>', path.read_text())
    return {name: json.loads(gzip.decompress(base64.b64decode(text))) for name, text in found}


def test_a_report_of_runs_and_results_holds_all_of_them(report: Path, result_path: Path) -> None:
    parts = parts_of(report)
    assert len(parts["contents"]["runs"]) == 2
    assert all(card["cost"]["usage"]["requests"] for card in parts["contents"]["runs"])
    assert parts["contents"]["results"] == [str(result_path)]
    assert parts[f"run/{RUN}"]["task"] == "scale"
    assert len(parts[f"steps/{RUN}/0"]["steps"]) == 32
    assert len(parts[f"steps/{RUN}/1"]["steps"]) == 8
    assert parts[f"winners/{result_path}/0"]["winners"]


def test_a_report_names_no_other_address_and_no_text_becomes_markup(report: Path) -> None:
    text = report.read_text()
    addresses = set(re.findall(r"https?://[\w./-]+", text))
    assert not addresses
    for name in modules():
        found = set(re.findall(r"https?://[\w./-]+", page_files()[name]))
        assert found <= {"http://www.w3.org/2000/svg"}  # the name of a kind of element
    assert HOSTILE not in text and "<img" not in text
    assert HOSTILE in parts_of(report)[f"run/{RUN}"]["steps"]["summary"]


def test_the_command_writes_the_file_and_says_what_is_next(cli: Cli, store_path: Path) -> None:
    code, out, err = cli("report", "latest", "-o", "a.html", "--store", store_path)
    assert code == 0, err
    assert "a.html: scale-20260103-030405-0001 (" in out
    assert "next: xdg-open a.html" in out
    assert "... reading scale-2026" in err
    assert len(parts_of(Path("a.html"))["contents"]["runs"]) == 1


def test_without_a_name_it_is_the_latest_run_s(cli: Cli, store_path: Path) -> None:
    code, out, _ = cli("report", "--json", "--store", store_path)
    assert code == 0
    answer = json.loads(out)
    assert answer["path"] == "scale-20260103-030405-0001.html" and answer["bytes"] > 10_000
    assert Path(answer["path"]).exists()


def test_a_benchmark_s_folder_needs_no_store(cli: Cli, result_path: Path) -> None:
    code, _, err = cli("report", result_path, "-o", "b.html")
    assert code == 0, err
    assert parts_of(Path("b.html"))["contents"]["results"] == [str(result_path)]


def test_what_cannot_be_had_is_an_error_with_a_hint(cli: Cli, store_path: Path) -> None:
    for arguments, words in (
        (("report", "nobody", "--store", store_path), "no run is called 'nobody'"),
        (("report", "latest", "--store", "none.sqlite"), "no such file, expected a run store"),
        (("report", "-o", "no/folder/a.html", "--store", store_path), "cannot be written"),
        (("report", "x" * 300, "--store", store_path), "no run is called"),
        (("dashboard", "--store", store_path, "--results", "."), "no benchmark result"),
    ):
        code, _, err = cli(*arguments)
        assert code == 2 and words in err and "hint: " in err and "Traceback" not in err
    assert not list(Path().glob("**/*.part"))


def test_any_step_s_program_can_be_written(cli: Cli, tmp_path: Path) -> None:
    fill(tmp_path / "runs.sqlite")
    code, out, err = cli("runs", "best", RUN, "--step", "3", "--store", tmp_path / "runs.sqlite")
    assert code == 0, err
    assert "scale_step3.py: step 3" in out
    assert "# number 3" in Path("scale_step3.py").read_text()
