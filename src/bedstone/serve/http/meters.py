"""What is counted, in Prometheus' text."""

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from bedstone.serve.link.link import Sight
from bedstone.serve.link.samples import Samples
from bedstone.serve.requests import Stats

PREFIX = "bedstone"
BEGAN = "_created"
"""How a sample's name ends that says when another began: no number to add."""
FIRST_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
TOKEN_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
COUNT_BUCKETS = tuple(float(2**power) for power in range(18))
WHOLE_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)

GAUGES = {
    "running": "Requests in the batch.",
    "waiting": "Requests that wait for a place in it.",
    "pages_total": "Pages of the cache.",
    "pages_held": "Pages that running requests hold.",
    "pages_cached": "Pages kept for prompts that begin the same.",
    "slots_total": "Slots for states of a sequence's own.",
    "slots_held": "Slots that running requests hold.",
    "prefixes": "Kept prompts on the device.",
    "prefixes_parked": "Kept prompts in the host's memory.",
    "host_bytes": "Memory of the host that these take.",
}
COUNTERS = {
    "steps": "Steps of the model.",
    "step_seconds": "Time of steps and of pieces of prompts between them.",
    "host_seconds": "Processor time of the host for that.",
    "prompt_tokens": "Tokens of prompts of requests that have ended.",
    "cached_tokens": "Tokens of prompts that were not computed again.",
    "fed_tokens": "Tokens of prompts that were computed.",
    "made_tokens": "Tokens made.",
    "preempted": "Times a running request had to give way.",
    "evicted": "Kept prompts that had to make way.",
    "parked": "Kept prompts that made way to the host's memory.",
    "woken": "Kept prompts that came back from the host's memory.",
    "remaps": "Times memory went from pages to slots or back.",
    "rounds": "Speculative rounds of a request.",
    "drafted": "Tokens that they tried.",
}


class Meters:
    """The counters of a front, beside those of its engine and of other fronts."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
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
        self.prompts = self._histogram(
            "answered_prompt_tokens", "Tokens of a prompt that was answered.", COUNT_BUCKETS
        )
        self.made = self._histogram("answer_tokens", "Tokens of an answer.", COUNT_BUCKETS)

    def samples(self) -> Samples:
        """What they hold, but for when they began to."""
        return {
            metric.name: [
                (each.name, tuple(each.labels.items()), each.value)
                for each in metric.samples
                if not each.name.endswith(BEGAN)
            ]
            for metric in self._registry.collect()
        }

    def text(self, sight: Sight) -> bytes:
        """The whole server's."""
        shown = CollectorRegistry(auto_describe=False)
        shown.register(_EngineCollector(sight.stats))
        shown.register(_FrontsCollector(self._registry, sight.others))
        return generate_latest(shown)

    def _counter(self, name: str, what: str, labels: Iterable[str] = ()) -> Counter:
        return Counter(f"{PREFIX}_{name}", what, labels, registry=self._registry)

    def _histogram(self, name: str, what: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"{PREFIX}_{name}", what, buckets=buckets, registry=self._registry)


class _EngineCollector(Collector):
    """What the engine counts."""

    def __init__(self, stats: Stats) -> None:
        self._stats = stats

    def collect(self) -> Iterator[Metric]:
        stats = self._stats
        for name, what in GAUGES.items():
            yield GaugeMetricFamily(f"{PREFIX}_{name}", what, value=getattr(stats, name))
        for name, what in COUNTERS.items():
            yield CounterMetricFamily(f"{PREFIX}_{name}", what, value=getattr(stats, name))
        yield SummaryMetricFamily(
            f"{PREFIX}_queue_seconds",
            "From a request until it is let into the batch.",
            count_value=stats.begun,
            sum_value=stats.waited_seconds,
        )
        ends = CounterMetricFamily(
            f"{PREFIX}_requests", "Requests of the engine, by how they ended.", labels=["reason"]
        )
        for reason, count in stats.finished.items():
            ends.add_metric([reason], count)
        yield ends
        right = CounterMetricFamily(
            f"{PREFIX}_accepted", "Tokens tried that were right, by their place.", labels=["place"]
        )
        for place, count in enumerate(stats.accepted, 1):
            right.add_metric([str(place)], count)
        yield right


class _FrontsCollector(Collector):
    """What a front counts, and others with it."""

    def __init__(self, own: CollectorRegistry, others: Samples) -> None:
        self._own = own
        self._others = others

    def collect(self) -> Iterator[Metric]:
        for metric in self._own.collect():
            others = self._others.get(metric.name, ())
            left = {(name, labels): value for name, labels, value in others}
            told = Metric(metric.name, metric.documentation, metric.type, metric.unit)
            for each in metric.samples:
                more = left.pop((each.name, tuple(each.labels.items())), 0.0)
                told.add_sample(each.name, each.labels, each.value + more)
            for (name, labels), value in left.items():
                told.add_sample(name, dict(labels), value)
            yield told
