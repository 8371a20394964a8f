"""`bedstone bench serve`: servers under load, side by side."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, astuple, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.extras import extra
from bedstone.cli.progress import Stages
from bedstone.cli.table import columns
from bedstone.cli.written import require_writable, write_file
from bedstone.errors import CallerError
from bedstone.spec.file import read_bounded

if TYPE_CHECKING:
    from bedstone.bench.load.answered import Answer, Quantiles, Summary
    from bedstone.bench.load.asked import Mix
    from bedstone.bench.load.client import Server
    from bedstone.bench.spread import Spread

_MOST_KEY = 4096
_LEAST = 1e-9
_MEASURES = {
    "first": "first token",
    "each": "a further token",
    "gap": "between pieces",
    "whole": "whole answer",
}

IgnoreEosOption = Annotated[
    bool, typer.Option("--ignore-eos", help="Answers as long as asked for, past the model's end.")
]


def command(
    urls: Annotated[
        list[str],
        typer.Argument(metavar="URL…", help="Servers, as http://127.0.0.1:8000; one at a time."),
    ],
    clients: Annotated[
        int, typer.Option(min=1, help="Clients; each asks again when it has its answer.")
    ] = 8,
    rate: Annotated[
        float | None,
        typer.Option(metavar="R", help="Requests a second instead, at times of a Poisson process."),
    ] = None,
    requests: Annotated[int, typer.Option(min=1, help="Requests in all, to each server.")] = 100,
    words: Annotated[str, typer.Option(metavar="N|N-M", help="Words of a prompt.")] = "32-256",
    shared: Annotated[
        int, typer.Option(min=0, metavar="N", help="Words that all prompts begin with.")
    ] = 0,
    tokens: Annotated[str, typer.Option(metavar="N|N-M", help="Tokens of an answer.")] = "16-128",
    ignore_eos: IgnoreEosOption = False,
    rounds: Annotated[int, typer.Option(min=1, help="Times each server is loaded, in turns.")] = 1,
    seed: Annotated[int, typer.Option(help="Of prompts, lengths and arrivals.")] = 0,
    api_key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The key the servers want.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw how long requests waited, SVG.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Load servers that speak the OpenAI API: time to first token, a further token, throughput.

    Several servers are loaded in turns with the same requests, of which a round has others than the
    one before. An answer that is refused, cut or faulty counts by what was wrong with it, and ends
    the command with 1.
    """
    from bedstone.bench.load.answered import Summary
    from bedstone.bench.load.asked import Mix, parse_span

    with extra("serve"):
        from bedstone.bench.load.client import first_model
    if rate is not None and not 0 < rate < float("inf"):
        raise CallerError(f"`--rate` is {rate}: expected requests a second, above 0")
    if plot is not None:
        require_writable(plot)
    key = None if api_key_file is None else _key(api_key_file)
    spans = parse_span("--words", words), parse_span("--tokens", tokens)
    mix = Mix(requests, *spans, shared, rate, seed, ignore_eos)
    with Stages() as stages:
        servers = [asyncio.run(first_model(url, key)) for url in urls]
        runs = _loaded(servers, mix, clients, rounds, stages)
    found = [Summary.of(rounds_of) for rounds_of in runs]
    if as_json:
        print_json(_document(servers, mix, clients, found))
    else:
        print("\n".join(_lines(servers, found)))
    if plot is not None:
        _draw(plot, urls, runs)
    if any(summary.faults for summary in found):
        raise typer.Exit(1)


def _draw(plot: Path, urls: Sequence[str], runs: "Sequence[Sequence[Sequence[Answer]]]") -> None:
    from bedstone.bench.load.picture import draw_waits

    pooled = [[answer for run in rounds_of for answer in run] for rounds_of in runs]
    write_file(plot, draw_waits(urls, pooled))


def _key(path: Path) -> str:
    text = read_bounded(path, _MOST_KEY).decode("latin-1").strip()
    if not text.isascii() or not text.isprintable() or not text:
        raise CallerError(f"`{path}` holds no key: expected one line of printable ASCII")
    return text


def _loaded(
    servers: Sequence["Server"], mix: "Mix", clients: int, rounds: int, stages: Stages
) -> "list[list[list[Answer]]]":
    """The answers of each server, round by round; the servers take turns."""
    from bedstone.bench.load.asked import draw_asks
    from bedstone.bench.load.client import drive

    runs: list[list[list[Answer]]] = [[] for _ in servers]
    for turn in range(rounds):
        asks = draw_asks(replace(mix, seed=mix.seed + turn))
        for server, answers in zip(servers, runs, strict=True):
            name = f"round {turn + 1} of {rounds}, {server.url}"
            done = partial(stages.step, name, total=len(asks))
            answers.append(asyncio.run(drive(server, asks, clients, done)))
    return runs


def _document(
    servers: Sequence["Server"], mix: "Mix", clients: int, found: Sequence["Summary"]
) -> dict[str, Any]:
    """The JSON object of `--json`."""
    return {
        "mix": asdict(mix),
        "clients": None if mix.rate is not None else clients,
        "servers": [
            {"url": server.url, "model": server.model, **summary.json()}
            for server, summary in zip(servers, found, strict=True)
        ],
        "first_over_others": [asdict(_ratio(found[0], other)) for other in found[1:]],
    }


def _lines(servers: Sequence["Server"], found: Sequence["Summary"]) -> list[str]:
    """A row a server and measure, and how the throughput of the first compares."""
    rows = [("server", "measure", "p50", "p90", "p99", "most")]
    rates = []
    for server, one in zip(servers, found, strict=True):
        for name in ("first", "each", "gap", "whole"):
            rows.append((server.url, _MEASURES[name], *_times(getattr(one, name))))
        rates.append(
            f"{server.url}  {one.tokens_per_second:.1f} tok/s, {one.requests_per_second:.2f} "
            f"requests/s; {one.tokens} tokens in {one.seconds:.1f} s"
        )
        rates += [f"{server.url}  {count} times: {fault}" for fault, count in one.faults.items()]
    ratios = [
        f"{servers[0].url} over {server.url}: {spread.median:.2f} times the tokens a second "
        f"[{spread.least:.2f}, {spread.most:.2f}]"
        for server, spread in zip(
            servers[1:], (_ratio(found[0], other) for other in found[1:]), strict=True
        )
    ]
    return [*columns(rows), *rates, *ratios]


def _ratio(ours: "Summary", theirs: "Summary") -> "Spread":
    """Our tokens a second over theirs, round by round."""
    from bedstone.bench.spread import ratios

    return ratios(
        [1 / max(r, _LEAST) for r in ours.rates], [1 / max(r, _LEAST) for r in theirs.rates]
    )


def _times(found: "Quantiles | None") -> tuple[str, str, str, str]:
    if found is None:
        return ("", "", "", "")
    return tuple(f"{value * 1e3:.1f} ms" for value in astuple(found))  # type: ignore[return-value]
