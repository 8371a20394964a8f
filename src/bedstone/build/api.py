"""The compiler from Python: `bedstone.compile` and `bedstone.plan`."""

from pathlib import Path
from typing import get_args

from bedstone.build.compile import compile_checkpoint
from bedstone.build.lane import target_lane
from bedstone.build.plan import plan_form
from bedstone.build.request import Options, Package, Request
from bedstone.checkpoint.reference import open_checkpoint
from bedstone.errors import CallerError
from bedstone.graph.step import FormName
from bedstone.lane.schedule import Numerics, Schedule
from bedstone.target.cache import user_cache


def compile(  # noqa: A001, PLR0913  (the public name of DESIGN's API, its options are keywords)
    checkpoint: str | Path,
    *,
    out: str | Path,
    target: str = "auto",
    numerics: Numerics = "quantized",
    context: int | None = None,
    sequences: int = 1,
    sampler: bool = False,
    cache: str | Path | None = None,
) -> Package:
    """Compile a checkpoint for a target into the directory `out`.

    `checkpoint` is a directory, a `.gguf` file or `pkg:PACKAGE/FILE`. `context` is the most
    positions a sequence may reach; None takes the model's own. More than one of `sequences` adds a
    step that decodes up to so many at once; with a `sampler` each says how its tokens are drawn.
    Any fault is a `BedstoneError`.
    """
    opened = open_checkpoint(str(checkpoint))
    try:
        kept = Path(cache) if cache is not None else user_cache()
        options = Options(numerics, context, sequences=sequences, sampler=sampler)
        request = Request(opened, options, kept, target)
        return compile_checkpoint(request, Path(out), lambda _: None)
    finally:
        opened.close()


def plan(
    checkpoint: str | Path,
    *,
    form: FormName = "decode",
    numerics: Numerics = "quantized",
    held: tuple[str, ...] = (),
    sequences: int = 8,
    target: str = "auto",
) -> Schedule:
    """The schedule of one form of a checkpoint's step; `held` names rules to hold back.

    A batch is of `sequences`, two at least. A `target` need not run on this machine.

    Raises `CallerError`: there is no such form, or step of so many sequences.
    """
    if form not in get_args(FormName):
        raise CallerError(f"no form `{form}`: expected one of {', '.join(get_args(FormName))}")
    opened = open_checkpoint(str(checkpoint))
    try:
        options = Options(numerics, held=held, sequences=sequences)
        return plan_form(opened, form, options, target_lane(target, numerics))
    finally:
        opened.close()
