"""Many clients, bad programs and sudden deaths: does the service lose or mix up anything?

    python benchmarks/service_load.py --jobs 10000 --clients 32
    python benchmarks/service_load.py --jobs 10000 --clients 32 --kill 20

A real `kernel-smith serve` with real judges. Jobs are honest programs, wrong ones, some that do not
compile, raise, crash or hang, and some that cheat. Each must end as the same program does when it
is evaluated alone. With `--kill`, a judge, a zygote, a candidate or the service itself is killed
every so many seconds; the service is then started again. Exits with 1 if anything is amiss.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from common import describe_machine, progress
from service_process import Process, Server, by_role, descendants, is_alive, memory_mib
from service_programs import Alone, Program, end_of, evaluate_alone, programs

from kernel_smith.evaluation.service.auth import add_token
from kernel_smith.records import (
    Evaluation,
    JobRequest,
    Reason,
)

HERE = Path(__file__).parent
RESULT = HERE / "results" / "service_load.json"
VICTIMS = ("judge", "zygote", "candidate", "server")
LOOKS = 2.0  # seconds between looks at memory


@dataclass
class Answered:
    client: int
    job: str
    program: str
    candidate: str
    end: str
    message: str
    created_at: datetime
    seconds: float  # as its client saw it
    evaluating: float  # as the service saw it


@dataclass
class Tally:
    answers: list[Answered] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    broken_calls: int = 0
    amiss: list[str] = field(default_factory=list)


class Client:
    def __init__(self, number: int, url: str, token: str, tally: Tally) -> None:
        self.number = number
        self.jobs: set[str] = set()
        self._tally = tally
        self._http = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=60,
            trust_env=False,
            verify=False,
            limits=httpx.Limits(max_connections=None),
        )

    async def ask(self, method: str, path: str, **content: Any) -> httpx.Response:
        """Ask until there is an answer: a service may be full, or dead for a while."""
        while True:
            try:
                response = await self._http.request(method, path, **content)
            except httpx.HTTPError:
                self._tally.broken_calls += 1
                await asyncio.sleep(0.2)
                continue
            self._tally.statuses[response.status_code] += 1
            if response.status_code not in (429, 503):
                return response
            await asyncio.sleep(float(response.headers.get("Retry-After", "1")))

    async def work(self, numbers: Iterator[int], plan: list[Program]) -> None:
        for number in numbers:
            program = plan[number]
            request = program.request(f"job {number} of client {self.number}")
            begun = time.monotonic()
            told = await self._evaluate(request)
            if told["state"] != "done":
                self._tally.amiss.append(f"job {number} ({program.name}): {told.get('error')}")
                continue
            evaluation = Evaluation.model_validate(told["evaluation"])
            right = request.candidate.content_hash
            if evaluation.candidate_hash != right:
                self._tally.amiss.append(f"job {number} got somebody else's evaluation")
            started, finished = (
                datetime.fromisoformat(told[name]) for name in ("started_at", "finished_at")
            )
            answered = Answered(
                client=self.number,
                job=told["id"],
                program=program.name,
                candidate=right,
                end=end_of(evaluation),
                message=evaluation.message,
                created_at=evaluation.created_at,
                seconds=time.monotonic() - begun,
                evaluating=(finished - started).total_seconds(),
            )
            self._tally.answers.append(answered)

    async def _evaluate(self, request: JobRequest) -> dict[str, Any]:
        """Submit, and wait for the end."""
        text = request.model_dump_json()
        headers = {"Content-Type": "application/json"}
        response = await self.ask("POST", "/v1/jobs", content=text, headers=headers)
        response.raise_for_status()
        told: dict[str, Any] = response.json()
        self.jobs.add(told["id"])
        while told["state"] in ("waiting", "running"):
            response = await self.ask("GET", f"/v1/jobs/{told['id']}", params={"wait": 20})
            response.raise_for_status()
            told = response.json()
        return told

    async def listed(self) -> list[dict[str, Any]]:
        """All jobs that the service knows of this client."""
        found: list[dict[str, Any]] = []
        while True:
            after = {"after": found[-1]["id"]} if found else {}
            page = (await self.ask("GET", "/v1/jobs", params={"limit": 1000, **after})).json()
            if not page["jobs"]:
                return found
            found += page["jobs"]

    async def close(self) -> None:
        await self._http.aclose()


class Killer:
    """Kills the kinds of victims in turn, in an order that chance decides."""

    def __init__(self, server: Server, kinds: list[str], seed: int) -> None:
        self._server = server
        self._kinds = kinds
        self._random = random.Random(seed)
        self._next: list[str] = []
        self.killed: Counter[str] = Counter()
        self.ready_again: list[float] = []
        self.bereaved: list[Process] = []

    async def kill(self) -> None:
        if not self._next:
            self._next = self._random.sample(self._kinds, len(self._kinds))
        kind = self._next.pop()
        if kind == "server":
            self.bereaved += descendants(self._server.pid)
            self._server.kill()
            self.ready_again.append(await asyncio.to_thread(self._server.start))
            self.killed[kind] += 1
            return
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            victims = by_role(self._server.pid)[kind]
            if victims:
                victim = self._random.choice(victims)
                self.bereaved += descendants(victim.pid) if kind != "candidate" else []
                if is_alive(victim):
                    os.kill(victim.pid, signal.SIGKILL)
                    self.killed[kind] += 1
                    return
            await asyncio.sleep(0.01)


async def kill_now_and_then(killer: Killer, chosen: argparse.Namespace, tally: Tally) -> None:
    marks = iter([chosen.jobs * (n + 1) // (chosen.kills + 1) for n in range(chosen.kills)])
    mark = next(marks, None)
    last = time.monotonic()
    while True:
        await asyncio.sleep(0.05)
        if mark is not None and len(tally.answers) >= mark:
            mark = next(marks, None)
            await killer.kill()
        elif chosen.kill and time.monotonic() - last >= chosen.kill:
            await killer.kill()
            last = time.monotonic()


async def watch(server: Server, tally: Tally, jobs: int, memory: list[dict[str, float]]) -> None:
    begun = time.monotonic()
    while True:
        judges = by_role(server.pid)["judge"]
        memory.append(
            {
                "seconds": round(time.monotonic() - begun, 1),
                "answers": len(tally.answers),
                "server_mib": round(memory_mib(server.pid), 1),
                "judges_mib": round(sum(memory_mib(judge.pid) for judge in judges), 1),
            }
        )
        progress(f"{len(tally.answers)} of {jobs} jobs, {memory[-1]['seconds']:.0f} s")
        await asyncio.sleep(LOOKS)


async def load(
    server: Server, tokens: list[str], plan: list[Program], chosen: argparse.Namespace
) -> dict[str, Any]:
    tally = Tally()
    memory: list[dict[str, float]] = []
    clients = [Client(n, server.url, token, tally) for n, token in enumerate(tokens)]
    killer = Killer(server, chosen.victims.split(","), chosen.seed)
    aside = [
        asyncio.create_task(kill_now_and_then(killer, chosen, tally)),
        asyncio.create_task(watch(server, tally, chosen.jobs, memory)),
    ]
    begun = time.monotonic()
    workers = []
    for client in clients:
        numbers = iter(range(client.number, chosen.jobs, len(clients)))
        workers += [client.work(numbers, plan) for _ in range(chosen.in_flight)]
    working = asyncio.gather(*workers)
    await asyncio.wait([working, *aside], return_when=asyncio.FIRST_COMPLETED)
    for task in aside:
        task.cancel()
    for ended in (working, *(await asyncio.gather(*aside, return_exceptions=True))):
        if isinstance(ended, Exception):
            raise ended
    await working
    seconds = time.monotonic() - begun
    progress("looking at every job again")
    listed = await check_again(clients, tally)
    for client in clients:
        await client.close()
    return {
        "jobs": chosen.jobs,
        "answers": len(tally.answers),
        "seconds": round(seconds, 1),
        "jobs_per_second": round(len(tally.answers) / seconds, 2),
        "latency_seconds": quantiles([each.seconds for each in tally.answers]),
        "evaluation_seconds": quantiles([each.evaluating for each in tally.answers]),
        "statuses": dict(sorted(tally.statuses.items())),
        "broken_calls": tally.broken_calls,
        "listed_jobs": listed,
        "memory": excerpt(memory),
        "kills": dict(killer.killed),
        "seconds_until_ready_again": [round(each, 2) for each in killer.ready_again],
        "ends": dict(Counter(each.end for each in tally.answers).most_common()),
        "amiss": tally.amiss,
        "_tally": tally,
        "_killer": killer,
    }


async def check_again(clients: list[Client], tally: Tally) -> int:
    """Every job is there, has ended, is as it was told, and does not exist for others."""
    known = {each.job: each for each in tally.answers}
    if len(known) != len(tally.answers):
        tally.amiss.append("two requests were answered by one job")
    counts = await asyncio.gather(
        *(
            _check_client(client, clients[(client.number + 1) % len(clients)], known, tally)
            for client in clients
        )
    )
    return sum(counts)


async def _check_client(
    client: Client, other: Client, known: dict[str, Answered], tally: Tally
) -> int:
    listed = await client.listed()
    if not client.jobs <= {job["id"] for job in listed}:
        tally.amiss.append(f"client {client.number}: jobs are lost")
    for number, job in enumerate(listed):
        if job["state"] != "done":
            tally.amiss.append(f"client {client.number}: job {job['id']} is {job['state']}")
        answered = known.get(job["id"])
        if answered is not None:
            told = (await client.ask("GET", f"/v1/jobs/{job['id']}")).json()["evaluation"]
            first = (answered.candidate, answered.created_at)
            now = (told["candidate_hash"], datetime.fromisoformat(told["created_at"]))
            if now != first:
                tally.amiss.append(f"job {job['id']} was answered twice")
        method = "DELETE" if number % 10 == 0 else "GET"
        if other is not client:
            response = await other.ask(method, f"/v1/jobs/{job['id']}")
            if response.status_code != 404:
                tally.amiss.append(f"client {other.number} reached a job of {client.number}")
    return len(listed)


def check_ends(found: dict[str, Any], alone: dict[str, Alone]) -> int:
    """Ends differ only where a candidate was killed from outside: it looks as if it crashed.

    And where the machine was too noisy, which is told so.
    """
    tally: Tally = found.pop("_tally")
    killer: Killer = found.pop("_killer")
    differing = [each for each in tally.answers if each.end not in alone[each.program].ends]
    excused = [each for each in differing if each.end in ("crashed", "load-crashed")]
    if len(excused) > killer.killed["candidate"]:
        tally.amiss.append(f"{len(excused)} crashes, {killer.killed['candidate']} were killed")
    for each in differing:
        if each not in excused and each.end != Reason.TOO_NOISY:
            tally.amiss.append(f"{each.program} ended as {each.end}: {each.message}")
    orphans = survivors(killer.bereaved)
    if orphans:
        tally.amiss.append(f"{len(orphans)} processes outlived their service: {orphans[:3]}")
    if len(tally.answers) != found["jobs"]:
        tally.amiss.append(f"{found['jobs'] - len(tally.answers)} jobs have no answer")
    return len(differing)


def survivors(processes: list[Process], patience: float = 5.0) -> list[Process]:
    """Those that go on; a process that lost its parent has a moment to notice."""
    deadline = time.monotonic() + patience
    while (found := [each for each in processes if is_alive(each)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def quantiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    if not ordered:
        return {}
    places = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {name: round(ordered[int(q * (len(ordered) - 1))], 3) for name, q in places.items()}


def excerpt(memory: list[dict[str, float]], most: int = 40) -> list[dict[str, float]]:
    step = max(1, len(memory) // most)
    return [*memory[:-1:step], *memory[-1:]]


def plan_of(chosen: list[Program], jobs: int, seed: int) -> list[Program]:
    """Each kind once, then as the weights say, in an order that chance decides."""
    chance = random.Random(seed)
    weights = [program.weight for program in chosen]
    rest = max(0, jobs - len(chosen))
    plan = [*chosen, *chance.choices(chosen, weights, k=rest)][:jobs]
    chance.shuffle(plan)
    return plan


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--in-flight", type=int, default=4, help="jobs of a client at a time")
    parser.add_argument("--lanes", type=int, default=2)
    parser.add_argument("--max-waiting", type=int, default=100, help="beyond this: status 429")
    parser.add_argument("--kill", type=float, default=0.0, help="seconds between kills")
    parser.add_argument("--kills", type=int, default=0, help="kills spread evenly over the jobs")
    parser.add_argument("--victims", default=",".join(VICTIMS))
    parser.add_argument("--only", default="", help="names of programs, with commas between them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=RESULT)
    return parser.parse_args()


def serve_command(folder: Path, chosen: argparse.Namespace) -> list[str]:
    return [
        *(sys.executable, "-c", "from kernel_smith.cli.entry import main; main()", "serve"),
        *("--store", str(folder / "jobs.sqlite"), "--clients", str(folder / "tokens")),
        *("--lanes", str(chosen.lanes), "--max-waiting", str(chosen.max_waiting)),
    ]


def main() -> None:
    chosen = arguments()
    with tempfile.TemporaryDirectory(prefix="service-load-") as name:
        folder = Path(name)
        os.environ["KERNEL_SMITH_CACHE"] = str(folder / "cache")
        only = chosen.only.split(",") if chosen.only else []
        kinds = [program for program in programs() if not only or program.name in only]
        alone = evaluate_alone(kinds)
        plan = plan_of(kinds, chosen.jobs, chosen.seed)
        mean = statistics.fmean(alone[program.name].seconds for program in plan)
        print(
            f"\none evaluation takes {mean:.2f} s alone; {chosen.jobs} on {chosen.lanes} lanes "
            f"take {chosen.jobs * mean / chosen.lanes / 60:.1f} minutes or more",
            file=sys.stderr,
        )
        tokens = [add_token(folder / "tokens", f"client-{n}") for n in range(chosen.clients)]
        server = Server(serve_command(folder, chosen))
        first_ready = server.start()
        try:
            found = asyncio.run(load(server, tokens, plan, chosen))
        finally:
            last = descendants(server.pid)
            server.stop()
        found["_killer"].bereaved += last
        found["ends_unlike_alone"] = check_ends(found, alone)
    report = {
        "what": "a service with real judges under load",
        "machine": describe_machine(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "settings": {
            name: value for name, value in vars(chosen).items() if name not in ("output", "jobs")
        },
        "alone_seconds": {name: round(each.seconds, 3) for name, each in alone.items()},
        "alone_ends": {name: sorted(each.ends) for name, each in alone.items()},
        "seconds_until_ready": round(first_ready, 2),
        **found,
    }
    chosen.output.write_text(json.dumps(report, indent=1) + "\n")
    shown = {name: report[name] for name in report if name not in ("memory", "alone_ends")}
    print(f"\n{json.dumps(shown, indent=1)}")
    sys.exit(bool(report["amiss"]))


if __name__ == "__main__":
    main()
