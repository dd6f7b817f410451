"""The MCP server, asked by the SDK's own client: made-up evaluations here, real ones beside it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kernel_smith.agents.door import Door
from kernel_smith.agents.long_work import LongWork
from kernel_smith.agents.skill import skill_text
from kernel_smith.bench.folder import read_result
from kernel_smith.records import Candidate, Reason
from kernel_smith.testing.trivial import TrivialEngine

if TYPE_CHECKING:
    from mcp import Client

TASK = "row_softmax"
PROGRAM = "class ModelNew:\n    speed = {}\n"


def speed_of(candidate: Candidate) -> float | Reason:
    """What a program says of itself; the starting kernel is slow, and so is what says nothing."""
    if "wrong" in candidate.source:
        return Reason.WRONG_VALUES
    return float(candidate.source.partition("speed = ")[2].partition("\n")[0] or 0.5)


@contextlib.contextmanager
def open_engine(seconds: float = 0.0) -> Iterator[TrivialEngine]:
    yield TrivialEngine(speed_of, seconds=seconds)


Talk = Callable[["Client"], Awaitable[None]]


def talk(tmp_path: Path, conversation: Talk, evaluations: int = 50, seconds: float = 0.0) -> None:
    """Hold a conversation with a server of its own."""

    # Only here: every worker that collects this file would wait for the protocol's package.
    from mcp import Client

    from kernel_smith.agents.server import make_server

    async def held() -> None:
        opener = partial(open_engine, seconds)
        door = Door(tmp_path / "runs.sqlite", opener, evaluations)
        async with Client(make_server(door)) as client:
            await conversation(client)
        door.close()

    asyncio.run(held())


async def call(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    """The structured result of a tool that works."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


async def complaint(client: Client, tool: str, **arguments: object) -> str:
    """What a tool says that does not."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    return "".join(getattr(part, "text", "") for part in result.content)


def test_an_agent_takes_a_run_from_its_start_to_something_faster(tmp_path: Path) -> None:
    async def conversation(client: Client) -> None:
        begun = await call(client, "begin_run", task=TASK)
        run = begun["run"]
        assert begun["verdict"]["ok"] and begun["verdict"]["score"] < 1
        asked = await call(client, "ask", run=run)
        assert asked["parent_step"] == 0
        assert "class ModelNew" in asked["rules"] and "cpp(" in asked["dialect"]
        assert "softmax" in asked["reference"]
        seen: list[str | None] = []

        async def watch(progress: float, total: float | None, message: str | None) -> None:
            seen.append(message)

        told = await client.call_tool(
            "tell",
            {"run": run, "source": PROGRAM.format(3.0), "parent": "0", "summary": "all of it"},
            progress_callback=watch,
        )
        assert told.structured_content is not None
        assert told.structured_content["is_best"]
        assert told.structured_content["measured_again"][0]["step"] == 1
        assert told.structured_content["evaluations_left"] == 48
        assert seen and str(seen[0]).startswith("judging your program")
        wrong = await call(client, "tell", run="latest", source="wrong = 1\n", parent="1")
        assert (wrong["verdict"]["reason"], wrong["best_step"]) == ("wrong-values", 1)
        assert "Advice: " in wrong["verdict"]["text"]
        asked = await call(client, "ask", run=run, parent="1", brief=True)
        assert asked["program"] == PROGRAM.format(3.0)
        assert asked["rules"] is None and "wrong-values" in asked["failures"][0]
        shown = await call(client, "show_run", run=run)
        assert shown["best_program"] == PROGRAM.format(3.0)
        assert [step["parent_step"] for step in shown["steps"]] == [None, 0, 1]
        (listed,) = (await call(client, "list_runs"))["runs"]
        assert (listed["run"], listed["evaluations"]) == (run, 3)

    talk(tmp_path, conversation)


def test_tasks_knowledge_and_resources_can_be_read(tmp_path: Path) -> None:
    async def conversation(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"ask", "tell", "evaluate", "begin_run", "knowledge", "bench_report"} <= set(tools)
        for tool in tools.values():
            assert tool.description and tool.output_schema, tool.name
        tasks = (await call(client, "list_tasks"))["tasks"]
        assert TASK in [task["name"] for task in tasks]
        shown = await call(client, "show_task", task=TASK)
        assert "class Model" in shown["reference"] and "class ModelNew" in shown["starts"]["cpp"]
        advice = await call(client, "knowledge", task=TASK)
        assert any("Sums, means and norms" in section for section in advice["sections"])
        assert "cpp: " in "\n".join((await call(client, "knowledge"))["sections"])
        assert (await call(client, "list_runs"))["runs"] == []
        found = [str(each.uri) for each in (await client.list_resources()).resources]
        assert "kernel-smith://hardware/triton_h200" in found
        for uri in found:
            (content,) = (await client.read_resource(uri)).contents
            assert len(getattr(content, "text", "")) > 200, uri

    talk(tmp_path, conversation)


def test_the_manual_lists_every_tool_and_no_other(tmp_path: Path) -> None:
    manual = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()
    table = manual.partition("| tool |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines()[2:]]

    async def conversation(client: Client) -> None:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {name.strip(" `") for row in rows for name in row.split(",")} == tools

    talk(tmp_path, conversation)


def test_mistakes_come_back_with_their_remedy(tmp_path: Path) -> None:
    async def conversation(client: Client) -> None:
        assert "hint: " in await complaint(client, "show_task", task="no_such_task")
        assert "hint: " in await complaint(client, "ask", run="latest")
        both = await complaint(client, "evaluate", task=TASK, source="x", file="y")
        assert "either source or file" in both
        missing = await complaint(client, "begin_run", task="silu_and_mul_llm", backend="triton")
        assert "no starting kernel" in missing and "hint: give a first program" in missing
        unread = await complaint(client, "begin_run", task=TASK, file="nowhere.py")
        assert "nowhere.py: cannot be read" in unread
        await call(client, "begin_run", task=TASK)
        again = await complaint(client, "tell", run="latest", source="class A: ...", parent="9")
        assert "--parent 9: none" in again
        assert "hint: " in await complaint(client, "bench_report", folder=str(tmp_path))
        assert "suite" in await complaint(client, "list_tasks", suite="tpu")

    talk(tmp_path, conversation)


def test_a_session_has_its_limit(tmp_path: Path) -> None:
    async def conversation(client: Client) -> None:
        await call(client, "begin_run", task=TASK)
        await call(client, "evaluate", task=TASK, source=PROGRAM.format(2))
        spent = await complaint(client, "evaluate", task=TASK, source=PROGRAM.format(3))
        assert "all 2 evaluations" in spent and "--evaluations" in spent
        await call(client, "ask", run="latest")  # reading is free

    talk(tmp_path, conversation, evaluations=2)


def write_programs(folder: Path, **speeds: float) -> dict[str, Any]:
    """Programs for problems of the CPU suite, and how a benchmark of them is asked for."""
    (folder / "mine").mkdir()
    for problem, speed in speeds.items():
        (folder / "mine" / f"{problem}.py").write_text(PROGRAM.format(speed))
    told = [f"mine={folder / 'mine'}"]
    names = {"suites": ["cpu"], "problems": list(speeds)}
    return {**names, "told": told, "folder": str(folder / "out")}


def test_an_agent_runs_a_benchmark_with_progress(tmp_path: Path) -> None:
    asked = write_programs(tmp_path, row_softmax=3.0, matmul=0.5)
    seen: list[str | None] = []

    async def watch(progress: float, total: float | None, message: str | None) -> None:
        seen.append(message)

    async def conversation(client: Client) -> None:
        result = await client.call_tool("bench", asked, progress_callback=watch)
        done = result.structured_content
        assert done is not None and not result.is_error, result.content
        assert (done["solved"], done["unfinished"], done["evaluations_left"]) == (2, 0, 48)
        shown = {row["problem"]: row["speedups"]["eager"]["value"] for row in done["rows"]}
        assert shown == {"row_softmax": 3.0, "matmul": 0.5}
        assert "| mine |" in done["text"]
        assert (await call(client, "bench_report", folder=done["folder"]))["text"] == done["text"]
        assert seen and str(seen[0]).startswith("benchmark: ")
        unknown = await complaint(client, "bench", suites=["cpu"], problems=["no_such"])
        assert "hint: " in unknown

    talk(tmp_path, conversation)


def test_a_benchmark_stops_at_the_limit_of_the_session_and_goes_on_in_another(
    tmp_path: Path,
) -> None:
    asked = write_programs(tmp_path, row_softmax=3.0, matmul=0.5, layer_norm=2.0)

    async def first(client: Client) -> None:
        done = await call(client, "bench", **asked)
        assert done["unfinished"] >= 1 and done["evaluations_left"] == 0
        assert "all 1 evaluations" in await complaint(client, "bench", **asked)

    async def second(client: Client) -> None:
        done = await call(client, "bench", **asked)
        assert (done["solved"], done["unfinished"]) == (3, 0)
        assert done["evaluations_left"] >= 48, "what was done is not done again"

    talk(tmp_path, first, evaluations=1)
    talk(tmp_path, second)


@pytest.mark.slow
def test_a_benchmark_that_is_cancelled_stops(tmp_path: Path) -> None:
    names = ("row_softmax", "matmul", "layer_norm", "rms_norm", "gelu_tanh", "swiglu")
    asked = write_programs(tmp_path, **dict.fromkeys(names, 2.0))
    begun = asyncio.Event()

    async def watch(progress: float, total: float | None, message: str | None) -> None:
        if "evaluations" in str(message):
            begun.set()

    async def conversation(client: Client) -> None:
        task = asyncio.create_task(client.call_tool("bench", asked, progress_callback=watch))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await call(client, "evaluate", task=TASK, source=PROGRAM.format(2))  # when it has stopped
        rows = read_result(tmp_path / "out").rows
        assert {row.status for row in rows} >= {"unfinished"}

    talk(tmp_path, conversation, seconds=0.3)


def test_work_that_nobody_waits_for_is_stopped() -> None:
    ended: list[str] = []
    work = LongWork("something")
    work.on_stop(lambda: ended.append("while it was done"))
    work.stop()
    late = LongWork("something")
    late.stop()
    late.on_stop(lambda: ended.append("before it began"))
    assert ended == ["while it was done", "before it began"]


def test_the_skill_file_names_tools_that_exist(tmp_path: Path) -> None:
    async def conversation(client: Client) -> None:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        text = skill_text()
        assert text.startswith("---\nname: kernel-smith\n")
        for tool in ("begin_run", "ask", "knowledge", "tell", "evaluate"):
            assert f"`{tool}(" in text and tool in tools

    talk(tmp_path, conversation)
