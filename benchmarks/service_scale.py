"""How many devices can one service keep busy?

    python benchmarks/service_scale.py --devices 1 8 64 256 1000 4000
    python benchmarks/service_scale.py --devices 1000 --profile --read

The service is a process of its own whose devices are simulated: each evaluation holds one for about
a second and uses no processor. Two client processes submit in batches of 256 and learn of ends from
the stream of changes; with `--read` they fetch every answer, too. Ideal is one job per device and
second; what is missing is the service's doing, or its clients', whose use of processors stands
beside.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import io
import json
import os
import pstats
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from common import describe_machine, progress
from service_process import Server, cpu_seconds, memory_mib

from kernel_smith.evaluation.engines.simulated import SimulatedEngine
from kernel_smith.evaluation.service.auth import TokenFile, add_token
from kernel_smith.evaluation.service.book import BookLimits, JobBook
from kernel_smith.evaluation.service.dispatcher import Dispatcher
from kernel_smith.evaluation.service.server import Service
from kernel_smith.records import Candidate, JobRequest, Task

RESULT = Path(__file__).parent / "results" / "service_scale.json"
BATCH = 256
READERS = 2
READ_AT_ONCE = 64
TOKEN = "SERVICE_SCALE_TOKEN"
LINES_OF_PROFILE = 25
_TICKS = os.sysconf("SC_CLK_TCK")


# The service


def serve(chosen: argparse.Namespace) -> None:
    """Until SIGTERM. Then it writes down what its threads used, and its profile if asked for."""
    folder: Path = chosen.serve
    profiles: dict[str, cProfile.Profile] = {}
    limits = BookLimits(waiting=1_000_000, waiting_per_client=1_000_000)
    transactions: Counter[str] = Counter()
    with (
        JobBook.open(folder / "jobs.sqlite", limits=limits) as book,
        SimulatedEngine(chosen.devices[0], chosen.seconds) as engine,
    ):
        book._file._connection.set_trace_callback(
            lambda statement: transactions.update([statement]) if statement == "COMMIT" else None
        )
        dispatcher = Dispatcher(book, engine, capacity=engine.capacity())
        if chosen.profile:
            dispatcher._thread._target = profiled(dispatcher._run, "dispatcher", profiles)
        tokens = TokenFile(folder / "tokens")
        service = Service(book, dispatcher, port=chosen.port, tokens=tokens, drain_seconds=30)
        used: dict[str, float] = {}
        stop = service.stop

        def note_and_stop() -> None:
            used.update(thread_seconds())
            stop()

        service.stop = note_and_stop
        run = profiled(service.run, "web", profiles) if chosen.profile else service.run
        run()
        engine_note = {"transactions": transactions["COMMIT"], "thread_seconds": used}
    texts = {name: profile_text(profile) for name, profile in profiles.items()}
    (folder / "service.json").write_text(json.dumps({**engine_note, "profiles": texts}))


def profiled(run: Any, name: str, profiles: dict[str, cProfile.Profile]) -> Any:
    def observed() -> None:
        # By processor time: threads wait for one another most of the time.
        profiles[name] = cProfile.Profile(time.thread_time)
        profiles[name].enable()
        try:
            run()
        finally:
            profiles[name].disable()

    return observed


def profile_text(profile: cProfile.Profile) -> str:
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(LINES_OF_PROFILE)
    return text.getvalue()


def thread_seconds() -> dict[str, float]:
    """Processor time by kind of thread."""
    used: Counter[str] = Counter()
    for thread in threading.enumerate():
        fields = Path(f"/proc/self/task/{thread.native_id}/stat").read_text().rpartition(")")[2]
        ticks = sum(int(field) for field in fields.split()[11:13])
        kind = thread.name if thread.name in ("dispatcher", "simulated devices") else "others"
        kind = "web" if thread.name == "MainThread" else kind
        kind = "web's helpers" if "AnyIO" in thread.name else kind
        used[kind] += ticks / _TICKS
    return dict(used)


# The clients


class Client:
    """Keeps `ahead` jobs at the service."""

    def __init__(self, http: httpx.AsyncClient, name: str, ahead: int, reading: bool) -> None:
        self._http = http
        self._name = name
        self._ahead = ahead
        self._reading = reading
        self._to_read: asyncio.Queue[str] = asyncio.Queue()
        self.submitted = 0
        self.ended = 0
        self.read = 0

    async def submit(self) -> None:
        headers = {"Content-Type": "application/json"}
        while True:
            room = self._ahead - (self.submitted - self.ended)
            if room <= 0:
                await asyncio.sleep(0.005)
                continue
            body = batch(self._name, self.submitted, min(BATCH, room))
            response = await self._http.post("/v1/jobs/batch", content=body, headers=headers)
            response.raise_for_status()
            self.submitted += len(response.json()["jobs"])

    async def follow(self) -> None:
        async with self._http.stream("GET", "/v1/events?after=0", timeout=60) as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data:") and '"state":"done"' in line:
                    self.ended += 1
                    if self._reading:
                        self._to_read.put_nowait(json.loads(line[5:])["id"])

    async def read_answers(self) -> None:
        while True:
            ids = [await self._to_read.get()]
            while not self._to_read.empty() and len(ids) < READ_AT_ONCE:
                ids.append(self._to_read.get_nowait())
            response = await self._http.post("/v1/jobs/read", json={"ids": ids})
            response.raise_for_status()
            self.read += len(response.json()["jobs"])


async def ask(chosen: argparse.Namespace) -> dict[str, Any]:
    """Keep jobs waiting for the whole time, and measure its second part."""
    async with httpx.AsyncClient(
        base_url=chosen.client,
        headers={"Authorization": f"Bearer {os.environ[TOKEN]}"},
        timeout=60,
        trust_env=False,
        verify=False,
        limits=httpx.Limits(max_connections=None),
    ) as http:
        client = Client(http, chosen.name, chosen.ahead, chosen.read)
        work = [client.submit(), client.follow(), *(client.read_answers() for _ in range(READERS))]
        tasks = [asyncio.create_task(each) for each in work]
        await settle(client, chosen)
        print("measuring", flush=True)
        begun, cpu, done_before = time.monotonic(), time.process_time(), await done(http)
        ended, read = client.ended, client.read
        await asyncio.wait(tasks, timeout=chosen.duration, return_when=asyncio.FIRST_EXCEPTION)
        done_after = await done(http)
        seconds, used = time.monotonic() - begun, time.process_time() - cpu
        for task in tasks:
            if task.done():
                task.result()
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return {
        "seconds": seconds,
        "done_in_all": done_after - done_before,
        "told": client.ended - ended,
        "read": client.read - read,
        "cpu_share": used / seconds,
        "submitted": client.submitted,
    }


async def settle(client: Client, chosen: argparse.Namespace) -> None:
    """Until as many jobs have ended as it keeps there, or for as long as one is patient."""
    deadline = time.monotonic() + chosen.warm_up
    while client.ended < chosen.ahead and time.monotonic() < deadline:
        await asyncio.sleep(0.05)


async def done(http: httpx.AsyncClient) -> int:
    text = (await http.get("/metrics")).text
    line = next(line for line in text.splitlines() if 'kernel_smith_jobs{state="done"}' in line)
    return int(float(line.split()[-1]))


def batch(name: str, first: int, count: int) -> str:
    task = Task(name="nothing", source="class Model: pass")
    requests = [
        JobRequest(task=task, candidate=Candidate(source=f"# {name} {number}"))
        for number in range(first, first + count)
    ]
    return f'{{"requests":[{",".join(each.model_dump_json() for each in requests)}]}}'


# The measurement


def measure(devices: int, chosen: argparse.Namespace) -> dict[str, Any]:
    script = [sys.executable, __file__]
    with tempfile.TemporaryDirectory(prefix="service-scale-") as name:
        folder = Path(name)
        settings = ["--devices", str(devices), "--seconds", str(chosen.seconds)]
        command = [*script, "--serve", str(folder), *settings]
        tokens = [add_token(folder / "tokens", f"client-{n}") for n in range(chosen.clients)]
        server = Server([*command, *(["--profile"] if chosen.profile else [])])
        server.start()
        try:
            clients = [
                subprocess.Popen(
                    [
                        *(*script, "--client", server.url, "--name", f"client {number}"),
                        *("--ahead", str(max(4, devices)), "--warm-up", str(chosen.warm_up)),
                        *("--duration", str(chosen.duration)),
                        *(["--read"] if chosen.read else []),
                    ],
                    stdout=subprocess.PIPE,
                    text=True,
                    env={**os.environ, TOKEN: token},
                )
                for number, token in enumerate(tokens)
            ]
            for client in clients:
                assert client.stdout is not None
                client.stdout.readline()
            cpu, begun = cpu_seconds(server.pid), time.monotonic()
            time.sleep(chosen.duration - 1)
            share = (cpu_seconds(server.pid) - cpu) / (time.monotonic() - begun)
            told = [json.loads(client.communicate()[0]) for client in clients]
            resident = memory_mib(server.pid)
        finally:
            server.stop()
        noted = json.loads((folder / "service.json").read_text())
    rate = sum(each["done_in_all"] / each["seconds"] for each in told) / len(told)
    ideal = devices / chosen.seconds
    threads = noted["thread_seconds"]
    return {
        "devices": devices,
        "jobs_per_second": round(rate, 1),
        "ideal_jobs_per_second": round(ideal, 1),
        "share_of_ideal": round(rate / ideal, 3),
        "told_per_second": round(sum(each["told"] / each["seconds"] for each in told), 1),
        "read_per_second": round(sum(each["read"] / each["seconds"] for each in told), 1),
        "server_cpu_share": round(share, 2),
        "server_threads_share": {
            kind: round(seconds / sum(threads.values()), 2) for kind, seconds in threads.items()
        },
        "clients_cpu_share": round(sum(each["cpu_share"] for each in told), 2),
        "transactions": noted["transactions"],
        "submitted": sum(each["submitted"] for each in told),
        "server_mib": round(resident, 1),
        **({"profiles": noted["profiles"]} if chosen.profile else {}),
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 8, 64, 256, 1000, 4000])
    parser.add_argument("--seconds", type=float, default=1.0, help="an evaluation takes")
    parser.add_argument("--clients", type=int, default=2, help="client processes")
    parser.add_argument("--warm-up", type=float, default=30.0, help="most seconds before")
    parser.add_argument("--duration", type=float, default=10.0)
    parser.add_argument(
        "--profile", action="store_true", help="print where the service's time goes"
    )
    parser.add_argument("--read", action="store_true", help="fetch every answer, too")
    parser.add_argument("--output", type=Path, default=RESULT)
    for hidden, kind in (("serve", Path), ("port", int), ("client", str), ("name", str)):
        parser.add_argument(f"--{hidden}", type=kind, help=argparse.SUPPRESS)
    parser.add_argument("--ahead", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    chosen = arguments()
    if chosen.serve:
        serve(chosen)
        return
    if chosen.client:
        print(json.dumps(asyncio.run(ask(chosen))))
        return
    points = []
    for devices in chosen.devices:
        progress(f"{devices} devices")
        points.append(measure(devices, chosen))
        profiles = points[-1].pop("profiles", {})
        print(f"\n{json.dumps(points[-1])}", flush=True)
        for name, text in profiles.items():
            print(f"--- {name}\n{text}")
    if chosen.profile:
        return  # a service that is observed is slower
    report = {
        "what": "a service with simulated devices",
        "machine": describe_machine(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "settings": {
            "seconds": chosen.seconds,
            "clients": chosen.clients,
            "batch": BATCH,
            "answers_read": chosen.read,
            "duration": chosen.duration,
        },
        "points": points,
    }
    chosen.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
