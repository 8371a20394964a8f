"""`bedstone serve`: many users of one model, over the API that OpenAI's clients speak."""

import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from bedstone.cli.device import device_target, hardware_device
from bedstone.cli.environment import cache_directory
from bedstone.cli.extras import extra
from bedstone.cli.options import ContextOption, DeviceOption, Numerics, TargetOption
from bedstone.cli.picks import TracesOption
from bedstone.cli.progress import Stages
from bedstone.cli.run import Wanted, open_package
from bedstone.cli.serving import (
    Manners,
    Reasoning,
    ToolParser,
    local_now,
    make_settings,
    read_keys,
    require_private,
)
from bedstone.errors import CallerError

if TYPE_CHECKING:
    from bedstone.build.request import Package

SEQUENCES = 16
"""Sequences that a step decodes where nothing says how many."""

MEBI = 1 << 20


def command(
    checkpoint: Annotated[
        str,
        typer.Argument(
            metavar="CHECKPOINT|PACKAGE",
            help="A Hugging Face directory, a .gguf file, pkg:PACKAGE/FILE, or a compiled package.",
        ),
    ],
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    name: Annotated[
        str | None, typer.Option(help="What clients call the model; by default its own name.")
    ] = None,
    api_key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keys, a line each; or one in BEDSTONE_API_KEY."),
    ] = None,
    without_key: Annotated[
        bool, typer.Option("--without-key", help="Listen at a public address without a key.")
    ] = False,
    sequences: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Most requests at once; the others wait."),
    ] = None,
    context: ContextOption = None,
    tokens: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Tokens that the cache holds, of all requests."),
    ] = None,
    queue: Annotated[
        int, typer.Option(min=0, metavar="N", help="Most requests that wait; more are refused.")
    ] = 256,
    chunk: Annotated[
        int, typer.Option(min=1, metavar="N", help="Most tokens of a prompt in one call.")
    ] = 128,
    budget: Annotated[
        int, typer.Option(min=1, metavar="N", help="Most tokens of prompts between two steps.")
    ] = 128,
    reuse: Annotated[
        bool, typer.Option("--reuse/--no-reuse", help="Keep prompts that begin the same.")
    ] = True,
    host_memory: Annotated[
        int, typer.Option(min=0, metavar="MIB", help="Memory for those that are in the way.")
    ] = 0,
    tool_parser: Annotated[
        ToolParser, typer.Option(help="How the model writes tool calls.")
    ] = ToolParser.auto,
    reasoning: Annotated[
        Reasoning, typer.Option(help="Whether thoughts are told apart from answers.")
    ] = Reasoning.auto,
    timeout: Annotated[
        float, typer.Option(min=0.1, metavar="S", help="Seconds an answer may take.")
    ] = 600.0,
    grace: Annotated[
        float, typer.Option(min=0, metavar="S", help="Seconds answers have when told to stop.")
    ] = 30.0,
    body: Annotated[int, typer.Option(min=1, metavar="MIB", help="Largest body of a request.")] = 4,
    numerics: Annotated[
        Numerics | None,
        typer.Option(help="As of `bedstone compile`; quantized by default, or the package's."),
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="One a core by default.")] = None,
    target: TargetOption = "auto",
    device: DeviceOption = None,
    traces: TracesOption = None,
) -> None:
    """Serve a checkpoint: compile it or find it compiled, load it, answer until told to stop."""
    with extra("serve"):
        from bedstone.serve.engine import Options, ThreadedEngine
        from bedstone.serve.http.bridge import Bridge
        from bedstone.serve.http.front import Front, Voice
        from bedstone.serve.http.server import Place, bound_socket, serve
    from bedstone.runtime.load import load

    keys = read_keys(api_key_file)
    require_private(host, keys, told=without_key)
    # an address in use is found out now, not after a compile
    place = Place(bound_socket(host, port), grace)
    wanted = Wanted(
        numerics, context, device_target(target, device), sequences or 1, traces, sampler=True
    )
    with Stages() as stages:
        wanted = _widened(wanted, checkpoint, sequences)
        opened, package = open_package(checkpoint, wanted, stages)
        manners = Manners(name, host, timeout, body * MEBI, tool_parser, reasoning)
        settings = make_settings(opened, package.path, manners, keys)
        session = load(
            package.path,
            device=(device or hardware_device(package.lock.target)).value,
            threads=threads,
            tokens=tokens,
            sequences=package.lock.sequences,
            checkpoint=opened,
            cache=cache_directory(),
            progress=stages.step,
        )
    options = Options(
        sequences=sequences,
        queue=queue,
        chunk=chunk,
        budget=budget,
        reuse=reuse,
        host_bytes=host_memory * MEBI,
    )
    bridge = Bridge()
    with session:
        engine = ThreadedEngine(session, bridge.deliver, options, monotonic)
        voice = Voice(opened.tokenizer, opened.chat_template)
        front = Front(engine, bridge, voice, settings, monotonic, local_now)
        serve(front, place, lambda url: _tell_ready(url, front.settings.model, package))


def _widened(wanted: Wanted, reference: str, sequences: int | None) -> Wanted:
    """A compile makes room for several; a package has as many as it was compiled for.

    Raises `CallerError`: it has fewer than asked for.
    """
    from dataclasses import replace

    from bedstone.build.request import is_package, read_package

    if not is_package(Path(reference)):
        return replace(wanted, sequences=sequences or SEQUENCES)
    most = read_package(Path(reference)).lock.sequences
    if sequences is not None and sequences > most:
        raise CallerError(
            f"`{reference}` was compiled for {most} of a step's sequences, `--sequences` is "
            f"{sequences}: compile it with `--sequences {sequences}`"
        )
    return wanted


def _tell_ready(url: str, model: str, package: "Package") -> None:
    lock = package.lock
    print(
        f"`{model}` is served at {url}: {lock.sequences} at once, {lock.context} tokens each",
        file=sys.stderr,
        flush=True,
    )
