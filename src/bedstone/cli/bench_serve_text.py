"""What `bedstone bench serve` says of the servers it loaded."""

from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any

from bedstone.bench.load.answered import Answer, Quantiles, Summary
from bedstone.bench.load.asked import Mix
from bedstone.bench.load.busy import Busy, Client
from bedstone.bench.load.goodput import Goal, Goodput
from bedstone.bench.load.server import Server
from bedstone.bench.spread import Spread, ratios
from bedstone.cli.table import columns

_LEAST = 1e-9
_MEASURES = {
    "first": "first token",
    "each": "a further token",
    "gap": "between pieces",
    "whole": "whole answer",
}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A server, its summary, what its load cost, how many answers met the goal if there is one."""

    server: Server
    summary: Summary
    client: Client
    goodput: Goodput | None

    @classmethod
    def of(
        cls,
        server: Server,
        rounds: Sequence[Sequence[Answer]],
        busy: Sequence[Sequence[Busy]],
        goal: Goal | None,
    ) -> "Loaded":
        """That of its rounds, one at least."""
        summary = Summary.of(rounds)
        answers = [answer for taken in rounds for answer in taken]
        goodput = None if goal is None else Goodput.of(goal, answers, summary.seconds)
        return cls(server, summary, Client.of(busy, summary.tokens), goodput)

    def json(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            "url": self.server.url,
            "model": self.server.model,
            **self.summary.json(),
            "goodput": None if self.goodput is None else self.goodput.json(),
            "client": self.client.json(),
        }


def document(mix: Mix, clients: int, found: Sequence[Loaded]) -> dict[str, Any]:
    """The JSON object of `--json`."""
    return {
        "mix": asdict(mix),
        "clients": None if mix.rate is not None else clients,
        "servers": [one.json() for one in found],
        "first_over_others": [asdict(_ratio(found[0], other)) for other in found[1:]],
    }


def lines(found: Sequence[Loaded]) -> list[str]:
    """A row a server and measure, and how the throughput of the first compares."""
    rows = [("server", "measure", "p50", "p90", "p99", "most")]
    for one in found:
        for name, told in _MEASURES.items():
            rows.append((one.server.url, told, *_times(getattr(one.summary, name))))
    rates = [f"{one.server.url}  {line}" for one in found for line in _rates(one)]
    spreads = [(other.server.url, _ratio(found[0], other)) for other in found[1:]]
    ours = found[0].server.url
    compared = [
        f"{ours} over {url}: {spread.median:.2f} times the tokens a second "
        f"[{spread.least:.2f}, {spread.most:.2f}]"
        for url, spread in spreads
    ]
    return [*columns(rows), *rates, *compared]


def warnings(found: Sequence[Loaded]) -> list[str]:
    """What has to be known before the figures are believed."""
    return [
        f"{one.server.url}: the client is likely what was measured: {_busy(one.client)}; "
        "give it more `--processes`, or another machine"
        for one in found
        if one.client.bound
    ]


def _rates(one: Loaded) -> list[str]:
    """What a server did, and what went wrong."""
    summary, goodput = one.summary, one.goodput
    rate = f"{summary.tokens_per_second:.1f} tok/s, {summary.requests_per_second:.2f} requests/s"
    told = [f"{rate}; {summary.tokens} tokens in {summary.seconds:.1f} s"]
    if goodput is not None:
        met = f"{goodput.requests} of {summary.requests} requests ({goodput.share:.1%})"
        told.append(f"{met} met the goal, {goodput.requests_per_second:.2f} a second")
    told.append(f"client: {_busy(one.client)}")
    return told + [f"{count} times: {fault}" for fault, count in summary.faults.items()]


def _busy(client: Client) -> str:
    cost, lag = client.cpu_seconds_per_token, client.lag
    each = "" if cost is None else f"{cost * 1e6:.1f} us of processor time a token, "
    late = "" if lag is None else f", late by {lag.p90 * 1e3:.1f} ms (p90)"
    processes = "1 process" if client.processes == 1 else f"{client.processes} processes"
    return f"{processes}, {each}the busiest at {client.share:.0%} of a core{late}"


def _ratio(ours: Loaded, theirs: Loaded) -> Spread:
    """Our tokens a second over theirs, round by round."""
    sides = (ours.summary.rates, theirs.summary.rates)
    taken, other = ([1 / max(rate, _LEAST) for rate in rates] for rates in sides)
    return ratios(taken, other)


def _times(found: Quantiles | None) -> tuple[str, str, str, str]:
    if found is None:
        return ("", "", "", "")
    return tuple(f"{value * 1e3:.1f} ms" for value in astuple(found))  # type: ignore[return-value]
