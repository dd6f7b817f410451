"""`--policy`, and the data to train one on: what cannot be used is told at once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernel_smith.proposers.mutator.registry import EDITS
from kernel_smith.testing.openai_server import OpenAIServer, Reply

Cli = Callable[..., Any]
TABLE = Path(__file__).parents[2] / "benchmarks" / "results" / "choices_x86.jsonl"
COMMAND = ("optimize", "rotary_embedding", "--evaluations", "2", "--store", "runs.sqlite")
CHOOSER = ("--proposer", "chooser")


def test_what_cannot_be_drawn_from_is_named_before_a_run_begins(cli: Cli, tmp_path: Path) -> None:
    gone = Reply(status=404)
    with OpenAIServer([gone], preflight=gone, models=["other"]) as server:
        done = cli(*COMMAND, *CHOOSER, "--policy", f"mine@{server.base_url}")
    done.complains(2, "no model is called 'mine'", "it has: other")
    with OpenAIServer([Reply("A")]) as server:
        done = cli(*COMMAND, *CHOOSER, "--policy", f"mine@{server.base_url}")
    done.complains(2, "has no log-probabilities (top_logprobs)", "vLLM")
    cli(*COMMAND, *CHOOSER, "--policy", "none.json").complains(2, "none.json: cannot be read")
    cli(*COMMAND, *CHOOSER, "--policy", str(tmp_path)).complains(
        2, "neither a model nor an adapter"
    )
    cli(*COMMAND, "--policy", "mine.json").complains(2, "takes no part", "--proposer chooser")
    assert not Path("runs.sqlite").exists()


def test_known_edits_become_questions_without_the_families_that_are_held_out(cli: Cli) -> None:
    beginning = TABLE.read_text().splitlines(keepends=True)[:16]
    Path("table.jsonl").write_text("".join(beginning))
    rows = [json.loads(line) for line in beginning]
    today = {edit.name for edit in EDITS}
    changes = [
        each["change"]
        for row in rows
        for each in row.get("changes", ())
        if each["change"].partition(":")[0] in today
    ]
    assert len(changes) < sum(len(row.get("changes", ())) for row in rows), "quiet-arithmetic"
    programs = len({row["parent"] for row in rows if row["kind"] == "sweep"})
    assert programs > 2 and any(row["kind"] == "judged" for row in rows)
    done = cli("data", "choices", "table.jsonl", "-o", "q.jsonl", "--orders", "2", "--json")
    assert done.code == 0, done.err
    # What was swept and judged counts once.
    assert (done.json["questions"], done.json["edits"]) == (2 * programs, len(changes))
    asked = [json.loads(line) for line in Path("q.jsonl").read_text().splitlines()]
    assert [each["prompt"][-7:] for each in asked] == ["Answer:"] * 2 * programs
    assert asked[0]["program"] == asked[1]["program"]
    by_child = [
        {each["children"][label]: worth for label, worth in each["rewards"].items()}
        for each in asked[:2]
    ]
    assert by_child[0] == by_child[1]  # in another order, and worth the same
    family = done.json["families"][0]
    less = cli("data", "choices", "table.jsonl", "-o", "r.jsonl", "--hold-out", family, "--json")
    assert family not in less.json["families"] and less.json["questions"] < 4 * programs
    cli("data", "choices", "none.jsonl", "-o", "x").complains(2, "there is no file none.jsonl")
    os.mkfifo("pipe")
    cli("data", "choices", "table.jsonl", "-o", "pipe").complains(2, "pipe: cannot be written")
    assert Path("pipe").is_fifo()
    done = cli("data", "choices", "table.jsonl", "-o", "x", "--hold-out", "nobody")
    done.complains(2, "no program is of the family 'nobody'", "choose from: ")
