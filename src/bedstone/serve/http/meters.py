"""What is counted, in Prometheus' text."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bedstone.serve.requests import Stats

PREFIX = "bedstone"
FIRST_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
TOKEN_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
WHOLE_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)

GAUGES = {
    "running": "Requests in the batch.",
    "waiting": "Requests that wait for a place in it.",
    "pages_total": "Pages of the cache.",
    "pages_held": "Pages that running requests hold.",
    "pages_cached": "Pages kept for prompts that begin the same.",
}
COUNTERS = {
    "steps": "Steps of the model.",
    "step_seconds": "Time in steps.",
    "host_seconds": "Time between steps.",
    "prompt_tokens": "Tokens of prompts of requests that have ended.",
    "cached_tokens": "Tokens of prompts that were not computed again.",
    "fed_tokens": "Tokens of prompts that were computed.",
    "made_tokens": "Tokens made.",
    "preempted": "Times a running request had to give way.",
    "evicted": "Kept prompts that had to make way.",
    "parked": "Kept prompts that made way to the host's memory.",
}


class Meters:
    """The counters of a front, beside those of its engine."""

    def __init__(self, stats: Callable[[], Stats]) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(_EngineCollector(stats))
        self.responses = self._counter("responses", "HTTP answers.", ("route", "status"))
        self.answers = self._counter("answers", "Choices, by how they ended.", ("finish",))
        self.aborts = self._counter("aborts", "Choices whose client went away.")
        self.first = self._histogram(
            "time_to_first_token_seconds", "From a request to its first token.", FIRST_BUCKETS
        )
        self.between = self._histogram(
            "inter_token_seconds", "From a token to the next of its choice.", TOKEN_BUCKETS
        )
        self.whole = self._histogram(
            "request_seconds", "From a request to its last token.", WHOLE_BUCKETS
        )

    def text(self) -> bytes:
        """All of them."""
        return generate_latest(self.registry)

    def _counter(self, name: str, what: str, labels: Iterable[str] = ()) -> Counter:
        return Counter(f"{PREFIX}_{name}", what, labels, registry=self.registry)

    def _histogram(self, name: str, what: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"{PREFIX}_{name}", what, buckets=buckets, registry=self.registry)


class _EngineCollector(Collector):
    """Reads the engine's own when somebody asks."""

    def __init__(self, stats: Callable[[], Stats]) -> None:
        self._stats = stats

    def collect(self) -> Iterator[Metric]:
        stats = self._stats()
        for name, what in GAUGES.items():
            yield GaugeMetricFamily(f"{PREFIX}_{name}", what, value=getattr(stats, name))
        for name, what in COUNTERS.items():
            yield CounterMetricFamily(f"{PREFIX}_{name}", what, value=getattr(stats, name))
        ends = CounterMetricFamily(
            f"{PREFIX}_requests", "Requests of the engine, by how they ended.", labels=["reason"]
        )
        for reason, count in stats.finished.items():
            ends.add_metric([reason], count)
        yield ends
