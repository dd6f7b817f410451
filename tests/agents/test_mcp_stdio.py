"""A real MCP client over standard input and output, with the real judge: naive to faster."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kernel_smith.records import Options

if TYPE_CHECKING:
    from mcp import Client, StdioServerParameters

pytestmark = pytest.mark.slow

REFERENCE = """
import torch

TASK = {"variants": ["large"]}


class Model(torch.nn.Module):
    def forward(self, x):
        copies = torch.relu(x).repeat(30, 1, 1)
        return torch.sort(copies, dim=0).values[0] + 1


def get_inputs():
    return [torch.randn(32, 64)]
"""
# A loop that does nothing before the one that is needed: slower by so much that no noise hides it.
WASTE = "for (volatile int64_t k = 0; k < 2000000; ++k);\n    for (int64_t i"


def server(folder: Path, measured: Options) -> StdioServerParameters:
    """The command, with runs that measure as shortly as those of other tests."""
    from mcp import StdioServerParameters

    options = measured.model_dump_json()
    program = (
        "from kernel_smith.cli.main import main\n"
        "from kernel_smith.runs import presets\n"
        f"presets._OPTIONS = type(presets._OPTIONS).model_validate_json({options!r})\n"
        "main()\n"
    )
    return StdioServerParameters(
        command=sys.executable,
        args=["-c", program, "mcp", "--store", "runs.sqlite", "--evaluations", "8"],
        env={"KERNEL_SMITH_CACHE": str(folder / "cache")},
        cwd=folder,
    )


async def call(client: Client, tool: str, seen: list[str], **arguments: object) -> dict[str, Any]:
    async def watch(progress: float, total: float | None, message: str | None) -> None:
        seen.append(message or "")

    result = await client.call_tool(tool, arguments, progress_callback=watch)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


async def converse(folder: Path, fast: str, measured: Options) -> None:
    """What an agent would do, with an answer that was written beforehand."""
    from mcp import Client

    seen: list[str] = []
    async with Client(server(folder, measured), read_timeout_seconds=300) as client:
        begun = await call(client, "begin_run", seen, task="task.py", file="naive.py")
        run, naive = begun["run"], begun["verdict"]
        assert naive["ok"], naive["text"]
        asked = await call(client, "ask", seen, run=run, best=True)
        assert asked["program"] == (folder / "naive.py").read_text()
        assert asked["rules"] and asked["dialect"] and asked["reference"] == REFERENCE
        (folder / "fast.py").write_text(asked["program"].replace(WASTE, "for (int64_t i"))
        assert (folder / "fast.py").read_text() == fast
        parent = str(asked["parent_step"])
        told = await call(client, "tell", seen, run=run, file="fast.py", parent=parent)
        assert told["verdict"]["ok"], told["verdict"]["text"]
        assert told["measured_again"], "it took the lead, and had to show it again"
        assert told["is_best"], told
        assert told["verdict"]["score"] > naive["score"]
        shown = await call(client, "show_run", seen, run=run)
        assert shown["best_program"] == fast
    assert any(message.startswith("judging") for message in seen)


def test_an_agent_makes_a_task_faster_through_the_door(
    quick: Options, tmp_path: Path, honest_source: str
) -> None:
    (tmp_path / "task.py").write_text(REFERENCE)
    (tmp_path / "naive.py").write_text(honest_source.replace("for (int64_t i", WASTE))
    sampling = quick.sampling.model_copy(update={"min_rounds": 12, "max_rounds": 12})
    measured = quick.model_copy(update={"sampling": sampling})
    asyncio.run(converse(tmp_path, honest_source, measured))
    assert (tmp_path / "runs.sqlite").exists()
