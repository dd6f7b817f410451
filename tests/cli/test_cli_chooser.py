"""`--policy` of the command line: who cannot be drawn from is told before a run begins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernel_smith.testing.openai_server import OpenAIServer, Reply

Cli = Callable[..., Any]
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
