"""What the service tells Prometheus, in a registry of its own."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kernel_smith.evaluation.service.book import JobBook
from kernel_smith.records import JobState

_SECONDS = (0.1, 0.3, 1.0, 3.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 900.0)

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    def __init__(self, book: JobBook) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "kernel_smith_http_requests",
            "HTTP requests answered",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._finished = Counter(
            "kernel_smith_jobs_finished",
            "Jobs that ended, by outcome",
            ["outcome"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "kernel_smith_evaluation_seconds",
            "Time from the begin of an evaluation to its end",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._registry.register(_Queue(book))

    def finished(self, outcome: str, seconds: float) -> None:
        self._finished.labels(outcome).inc()
        self._seconds.observe(seconds)

    def answered(self, method: str, route: str, status: int) -> None:
        self._requests.labels(method, route, str(status)).inc()

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _Queue(Collector):
    """Asks the book when it is asked itself."""

    def __init__(self, book: JobBook) -> None:
        self._book = book

    def collect(self) -> Iterable[GaugeMetricFamily]:
        jobs = GaugeMetricFamily("kernel_smith_jobs", "Jobs kept, by state", labels=["state"])
        counts = self._book.counts()
        for state in JobState:
            jobs.add_metric([state.value], counts.get(state, 0))
        yield jobs
        yield GaugeMetricFamily(
            "kernel_smith_oldest_waiting_seconds",
            "How long the job that waits longest has waited; 0 if none does",
            value=self._book.oldest_waiting_seconds() or 0.0,
        )


class CountRequests:
    """Counts answers by the route's pattern: ids in paths would make a series for each job."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        status = int(HTTPStatus.INTERNAL_SERVER_ERROR)  # unless an answer is begun

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            # Methods are free text; not everything that somebody thinks up makes a series.
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.answered(method, route, status)
