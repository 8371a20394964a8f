"""`bedstone bench serve`: servers under load, side by side."""

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.extras import extra
from bedstone.cli.guard import plain
from bedstone.cli.progress import Stages
from bedstone.cli.written import require_writable, write_file
from bedstone.errors import CallerError
from bedstone.spec.file import read_bounded

if TYPE_CHECKING:
    from bedstone.bench.load.asked import Mix
    from bedstone.bench.load.server import Server
    from bedstone.bench.load.team import Driven, Team

_MOST_KEY = 4096
_MOST_PROMPTS = 1 << 30
_WARM_SEED = 1 << 32

IgnoreEosOption = Annotated[
    bool, typer.Option("--ignore-eos", help="Answers as long as asked for, past the model's end.")
]
ChatOption = Annotated[
    bool, typer.Option("--chat", help="Ask /v1/chat/completions, not /v1/completions.")
]
PromptsOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Prompts to ask: ShareGPT, or an object a line."),
]
WithinOption = Annotated[
    str | None,
    typer.Option(metavar="GOAL", help="Count answers as soon as this: first=200,each=50 (ms)."),
]
ProcessesOption = Annotated[
    int | None,
    typer.Option(min=1, max=256, metavar="N", help="Processes that the clients are in."),
]
RateOption = Annotated[
    float | None,
    typer.Option(metavar="R", help="Requests a second instead, at times of a Poisson process."),
]
WarmUpOption = Annotated[
    int, typer.Option(min=0, metavar="N", help="Requests before these, that count for nothing.")
]
KeyOption = Annotated[Path | None, typer.Option(metavar="FILE", help="The key the servers want.")]
PlotOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Draw how long requests waited, SVG.")
]
SharedOption = Annotated[
    int, typer.Option(min=0, metavar="N", help="Words that all prompts begin with.")
]
ClientsOption = Annotated[
    int, typer.Option(min=1, help="Clients; each asks again when it has its answer.")
]


def command(
    urls: Annotated[
        list[str],
        typer.Argument(metavar="URL…", help="Servers, as http://127.0.0.1:8000; one at a time."),
    ],
    clients: ClientsOption = 8,
    rate: RateOption = None,
    requests: Annotated[int, typer.Option(min=1, help="Requests in all, to each server.")] = 100,
    words: Annotated[str, typer.Option(metavar="N|N-M", help="Words of a prompt.")] = "32-256",
    shared: SharedOption = 0,
    prompts: PromptsOption = None,
    tokens: Annotated[str, typer.Option(metavar="N|N-M", help="Tokens of an answer.")] = "16-128",
    ignore_eos: IgnoreEosOption = False,
    chat: ChatOption = False,
    warm_up: WarmUpOption = 0,
    rounds: Annotated[int, typer.Option(min=1, help="Times each server is loaded, in turns.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Of prompts, lengths and arrivals.")] = 0,
    within: WithinOption = None,
    processes: ProcessesOption = None,
    api_key_file: KeyOption = None,
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Load servers that speak the OpenAI API: time to first token, a further token, throughput.

    Servers take turns with the same requests, new ones each round. Answers that
    are refused, cut or faulty are counted by why, and end the command with 1. A
    warning says where the client, not the server, is likely what was timed.
    """
    from bedstone.bench.load.asked import Mix, parse_span
    from bedstone.bench.load.goodput import parse_goal
    from bedstone.cli.bench_serve_text import Loaded, document, lines, warnings

    if rate is not None and not 0 < rate < float("inf"):
        raise CallerError(f"`--rate` is {rate}: expected requests a second, above 0")
    if plot is not None:
        require_writable(plot)
    spans = parse_span("--words", words), parse_span("--tokens", tokens)
    goal = None if within is None else parse_goal("--within", within)
    load = _Load(
        Mix(requests, *spans, shared, rate, seed, ignore_eos),
        _prompts(prompts, shared),
        _team(clients, rate, processes),
    )
    servers = _servers(urls, None if api_key_file is None else _key(api_key_file), chat)
    runs = load.run(servers, rounds, warm_up)
    found = [
        Loaded.of(server, [one.answers for one in run], [one.busy for one in run], goal)
        for server, run in zip(servers, runs, strict=True)
    ]
    if as_json:
        print_json(document(load.mix, clients, found))
    else:
        print("\n".join(lines(found)))
    for warning in warnings(found):
        print(f"bedstone: {plain(warning)}", file=sys.stderr)
    if plot is not None:
        _draw(plot, urls, runs)
    if any(one.summary.faults for one in found):
        raise typer.Exit(1)


class _Load:
    """What servers are loaded with."""

    def __init__(self, mix: "Mix", prompts: Sequence[str], team: "Team") -> None:
        self.mix = mix
        self._prompts = prompts
        self._team = team

    def run(self, servers: Sequence["Server"], rounds: int, warm_up: int) -> "list[list[Driven]]":
        """What each server did, round by round; the servers take turns."""
        runs: list[list[Driven]] = [[] for _ in servers]
        with Stages() as stages:
            if warm_up:
                # other words than any round's, or a cache would know those
                mix = replace(
                    self.mix, requests=warm_up, rate=None, seed=self.mix.seed + _WARM_SEED
                )
                for server in servers:
                    self._drive(server, mix, f"warm-up, {server.url}", stages)
            for turn in range(rounds):
                mix = replace(self.mix, seed=self.mix.seed + turn)
                for server, run in zip(servers, runs, strict=True):
                    name = f"round {turn + 1} of {rounds}, {server.url}"
                    run.append(self._drive(server, mix, name, stages))
        return runs

    def _drive(self, server: "Server", mix: "Mix", name: str, stages: Stages) -> "Driven":
        from bedstone.bench.load.asked import draw_asks
        from bedstone.bench.load.team import drive

        asks = draw_asks(mix, self._prompts)
        done = partial(stages.step, name, total=len(asks))
        return asyncio.run(drive(server, asks, self._team, done))


def _servers(urls: Sequence[str], key: str | None, chat: bool) -> "list[Server]":
    """Each with the first model that it lists."""
    from bedstone.bench.load.server import Server

    with extra("serve"):
        from bedstone.bench.load.client import first_model
    return [Server(url, asyncio.run(first_model(url, key)), key, chat) for url in urls]


def _team(clients: int, rate: float | None, processes: int | None) -> "Team":
    """The clients and their processes; where requests arrive by themselves, as for many clients."""
    from bedstone.bench.load.team import MOST_CLIENTS, Team, fitting_processes

    crowd = clients if rate is None else MOST_CLIENTS
    count = processes or fitting_processes(crowd, len(os.sched_getaffinity(0)))
    return Team(clients if rate is None else count, count)


def _prompts(path: Path | None, shared: int) -> tuple[str, ...]:
    from bedstone.bench.load.prompts import parse_prompts

    if path is None:
        return ()
    if shared:
        raise CallerError("`--shared` is of made-up words: expected none beside `--prompts`")
    return parse_prompts(str(path), read_bounded(path, _MOST_PROMPTS))


def _draw(plot: Path, urls: Sequence[str], runs: "Sequence[Sequence[Driven]]") -> None:
    from bedstone.bench.load.picture import draw_waits

    pooled = [[answer for driven in run for answer in driven.answers] for run in runs]
    write_file(plot, draw_waits(urls, pooled))


def _key(path: Path) -> str:
    text = read_bounded(path, _MOST_KEY).decode("latin-1").strip()
    if not text.isascii() or not text.isprintable() or not text:
        raise CallerError(f"`{path}` holds no key: expected one line of printable ASCII")
    return text
