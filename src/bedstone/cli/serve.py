"""`bedstone serve`: many users of one model, over the API that OpenAI's clients speak."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bedstone.cli.device import device_target, hardware_device
from bedstone.cli.environment import cache_directory
from bedstone.cli.extras import extra
from bedstone.cli.opened import Wanted, open_package
from bedstone.cli.options import (
    ContextOption,
    Device,
    DeviceOption,
    OpenedArgument,
    PackageNumericsOption,
    TargetOption,
    ThreadsOption,
    WeightsOption,
)
from bedstone.cli.picks import TracesOption
from bedstone.cli.progress import Stages
from bedstone.cli.serve_log import HEARD
from bedstone.cli.serve_options import (
    AtOnceOption,
    BodyOption,
    BudgetOption,
    ChunkOption,
    FrontsOption,
    GraceOption,
    HostMemoryOption,
    HostOption,
    KeyFileOption,
    Log,
    LogOption,
    NameOption,
    OriginOption,
    PortOption,
    QueueOption,
    Reasoning,
    ReasoningOption,
    ReuseOption,
    RowsOption,
    TimeoutOption,
    TokensOption,
    ToolParser,
    ToolParserOption,
    WithoutKeyOption,
)
from bedstone.cli.served import tell_notes
from bedstone.cli.serving import (
    Manners,
    answer,
    make_settings,
    read_keys,
    read_origins,
    require_private,
)
from bedstone.errors import CallerError

if TYPE_CHECKING:
    from bedstone.build.request import Package
    from bedstone.checkpoint.checkpoint import Checkpoint
    from bedstone.runtime.session import Session

SEQUENCES = 16
"""Sequences that a step decodes where nothing says how many."""

MEBI = 1 << 20

ENDLESS = "the checkpoint names no end token: answers go on to `max_tokens`, or a `stop` of theirs"


class Pieces(NamedTuple):
    """Most tokens of a prompt in one call, and of all prompts between two steps."""

    chunk: int
    budget: int


PIECES = {Device.cpu: Pieces(128, 64), Device.cuda: Pieces(2048, 2048)}
"""Of each device where nothing says how many: a GPU's products want many rows."""

FRONTS = {Device.cpu: 0, Device.cuda: 2}
"""Of each device where nothing says how many: on a CPU the steps want its cores."""


def command(
    checkpoint: OpenedArgument,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8000,
    name: NameOption = None,
    api_key_file: KeyFileOption = None,
    without_key: WithoutKeyOption = False,
    allow_origin: OriginOption = None,
    sequences: AtOnceOption = None,
    context: ContextOption = None,
    tokens: TokensOption = None,
    queue: QueueOption = 256,
    chunk: ChunkOption = None,
    budget: BudgetOption = None,
    rows: RowsOption = None,
    reuse: ReuseOption = True,
    host_memory: HostMemoryOption = 0,
    tool_parser: ToolParserOption = ToolParser.auto,
    reasoning: ReasoningOption = Reasoning.auto,
    timeout: TimeoutOption = 600.0,
    grace: GraceOption = 30.0,
    body: BodyOption = 4,
    fronts: FrontsOption = None,
    log: LogOption = Log.rates,
    numerics: PackageNumericsOption = None,
    threads: ThreadsOption = None,
    target: TargetOption = "auto",
    device: DeviceOption = None,
    traces: TracesOption = None,
    weights: WeightsOption = None,
) -> None:
    """Serve a checkpoint: compile it or find it compiled, load it, answer until told to stop."""
    with extra("serve"):
        from bedstone.serve.engine import Options
        from bedstone.serve.http.server import Place, bound_socket
        from bedstone.serve.log import write_log

    keys = read_keys(api_key_file)
    require_private(host, keys, told=without_key)
    pinned = device_target(target, device)
    width = _width(checkpoint, sequences)
    wanted = Wanted(numerics, context, pinned, width, traces, sampler=True, weights=weights)
    origins = read_origins(allow_origin or ())
    manners = Manners(name, host, timeout, body * MEBI, tool_parser, reasoning, origins, HEARD[log])
    # an address in use is found out now, not after a compile
    with bound_socket(host, port) as bound:
        with Stages() as stages:
            opened, package = open_package(checkpoint, wanted, stages)
            settings = make_settings(opened, package.path, manners, keys)
            runs_on = device or hardware_device(package.lock.target)
            session = _loaded(package, opened, runs_on, threads, tokens, stages)
        pieces = _pieces(runs_on, chunk, budget)
        host_bytes = host_memory * MEBI
        options = Options(sequences, queue, *pieces, reuse=reuse, host_bytes=host_bytes, rows=rows)
        ready = partial(_tell_ready, settings.model, opened, package)
        write_log(settings.heard)
        with session:
            count = FRONTS[runs_on] if fronts is None else fronts
            answer(session, opened, settings, options, Place(bound, grace), ready, count)


def _loaded(
    package: "Package",
    opened: "Checkpoint",
    device: Device,
    threads: int | None,
    tokens: int | None,
    stages: Stages,
) -> "Session":
    """The package on its device, with the weights of its checkpoint."""
    from bedstone.runtime.load import load

    return load(
        package.path,
        device=device.value,
        threads=threads,
        tokens=tokens,
        sequences=package.lock.sequences,
        remaps=True,
        checkpoint=opened,
        cache=cache_directory(),
        progress=stages.step,
    )


def _pieces(device: Device, chunk: int | None, budget: int | None) -> Pieces:
    """As asked for, else as is usual on the device."""
    usual = PIECES[device]
    return Pieces(chunk or usual.chunk, budget or usual.budget)


def _width(reference: str, sequences: int | None) -> int:
    """How many sequences a step is to decode; a package is as wide as it was compiled.

    Raises `CallerError`: it is narrower than asked for.
    """
    from bedstone.build.request import is_package, read_package

    if not is_package(Path(reference)):
        return sequences or SEQUENCES
    most = read_package(Path(reference)).lock.sequences
    if sequences is not None and sequences > most:
        raise CallerError(
            f"`{reference}` was compiled for {most} of a step's sequences, `--sequences` is "
            f"{sequences}: compile it with `--sequences {sequences}`"
        )
    return most


def _tell_ready(model: str, opened: "Checkpoint", package: "Package", url: str) -> None:
    lock = package.lock
    tell_notes(opened, package)
    if not opened.tokenizer.eos:
        print(f"note: {ENDLESS}", file=sys.stderr)
    print(
        f"`{model}` is served at {url}: {lock.sequences} at once, {lock.context} tokens each",
        file=sys.stderr,
        flush=True,
    )
