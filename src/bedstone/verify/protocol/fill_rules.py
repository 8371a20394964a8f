"""Rules on the axes and on the buffers a loop fills or reads."""

from collections.abc import Iterator
from itertools import groupby

from bedstone.spec.manifest import Axis, Fill
from bedstone.verify.protocol.reading import Filled, Reading, each_driven, each_filled
from bedstone.verify.protocol.roles import FORMS
from bedstone.verify.rule import Each, Finding, Rows, Rule


def driven_axes(reading: Reading) -> Iterator[Finding]:
    """A manifest with a `batch` has a var that counts its rows and one that counts its groups.

    Not so a stage of a cut, which has only the vars that its own calls read.
    """
    first = next(each_driven(reading), None) if reading.manifest.cut is None else None
    required: tuple[Axis, ...] = ("rows", "groups")
    missing = [axis for axis in required if reading.axes.var(axis) is None]
    for axis in missing if first else []:
        yield Finding(
            f"no var counts the `{axis}` axis, which program `{first.name if first else ''}` is "
            f"driven over; a manifest with a `batch` has one",
            "/vars",
            first.place.objects if first else (),
        )


def form(filled: Filled) -> Iterator[Finding]:
    """A fill's buffer has the shape the fill takes."""
    expected, axes = FORMS[filled.fill], filled.reading.axes
    if not expected.fits(filled.role, filled.buffer.shape, axes):
        shape = ", ".join(map(str, filled.buffer.shape))
        yield filled.place.finding(
            f"has fill `{filled.fill}` and shape [{shape}], expected {expected.spelled(axes)}",
            at="/shape",
        )


def element(filled: Filled) -> Iterator[Finding]:
    """`blocks` and `error` are i32."""
    expected = FORMS[filled.fill].dtype
    if expected is not None and filled.buffer.dtype != expected:
        yield filled.place.finding(
            f"has fill `{filled.fill}` and dtype {filled.buffer.dtype}, expected {expected}",
            at="/dtype",
        )


def group_batch(filled: Filled) -> Iterator[Finding]:
    """`blocks` needs a var that counts the `ranks` axis."""
    if filled.fill == "blocks" and filled.reading.axes.ranks is None:
        yield filled.place.finding(
            "has fill `blocks`, but no var counts the `ranks` axis whose rows it splits",
            at="/fill",
        )


def single(reading: Reading) -> Iterator[Finding]:
    """A fill stands on one buffer; `token` on one for each axis, `tokens` on any number."""
    filled = [f for f in each_filled(reading) if f.fill != "tokens"]
    for (fill, over), same in groupby(sorted(filled, key=_use), key=_use):
        names = [f.name for f in same]
        if len(names) > 1:
            listed = ", ".join(f"`{name}`" for name in names)
            yield Finding(
                f"fill `{fill}`{f' over {over}' if over else ''} is on {len(names)} buffers "
                f"({listed}), expected one",
                "/buffers",
                tuple(f"buffer {name}" for name in names),
            )


def _use(filled: Filled) -> tuple[Fill, str]:
    over = filled.role.over if filled.role and filled.fill == "token" else None
    return filled.fill, over or ""


def fed(reading: Reading) -> Iterator[Finding]:
    """Tokens come in over the rows, but for a stage after the first of a cut."""
    fills = [f.role for f in each_filled(reading) if f.fill == "token" and f.role]
    if not reading.later_stage and not any(role.over in {"rows", "ranks"} for role in fills):
        yield Finding(
            "no input has fill `token` over the rows: nothing carries the tokens a call feeds",
            "/buffers",
            (),
        )


FILL_ROWS: Rows[Reading] = (
    Rule("R-axes", "axes", driven_axes),
    Each(
        each_filled,
        (
            Rule("R-form", "fills", form),
            Rule("R-element", "fills", element),
            Rule("R-blocks", "fills", group_batch),
        ),
    ),
    Rule("R-single", "fills", single),
    Rule("R-token", "fills", fed),
)
