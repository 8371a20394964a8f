"""Rules on the programs a loop drives: what one call takes and what it hands back."""

from collections.abc import Iterator

from bedstone.verify.protocol.reading import Driven, Reading, each_driven
from bedstone.verify.protocol.roles import role_of
from bedstone.verify.rule import Each, Finding, Rows, Rule


def rows(driven: Driven) -> Iterator[Finding]:
    """Groups times a constant `rows` stay within the rows var."""
    var, batch = driven.reading.axes.rows, driven.batch
    if var and isinstance(batch.rows, int) and batch.groups * batch.rows > var.max:
        yield driven.place.finding(
            f"takes {batch.groups} sequences of {batch.rows} rows, more than the {var.max} rows "
            f"`{var.name}` allows",
            f"var {var.name}",
            at="/batch/rows",
        )


def rows_var(driven: Driven) -> Iterator[Finding]:
    """A var as `rows` is the one that counts the rows axis."""
    var, named = driven.reading.axes.rows, driven.batch.rows
    if var and isinstance(named, str) and named != var.name:
        yield driven.place.finding(
            f"has var `{named}` as `batch.rows`, but the rows of a call go in `{var.name}`",
            f"var {named}",
            at="/batch/rows",
        )


def split(driven: Driven) -> Iterator[Finding]:
    """Rows set per call over several groups need a `cu_seqlens` fill to split them."""
    batch = driven.batch
    if not isinstance(batch.rows, str) or batch.groups == 1:
        return
    buffers = driven.reading.manifest.buffers
    if not any(buffer.fill == "cu_seqlens" for buffer in buffers.values()):
        yield driven.place.finding(
            f"takes up to {batch.groups} sequences with rows set per call, and no input has fill "
            f"`cu_seqlens` to split them",
            at="/batch",
        )


def groups(driven: Driven) -> Iterator[Finding]:
    """`groups` stays within the groups var."""
    var, batch = driven.reading.axes.groups, driven.batch
    if var and batch.groups > var.max:
        yield driven.place.finding(
            f"takes {batch.groups} sequences, more than the {var.max} `{var.name}` allows",
            f"var {var.name}",
            at="/batch/groups",
        )


def emits(driven: Driven) -> Iterator[Finding]:
    """A program writes one `tokens` output at most."""
    written = driven.written("tokens")
    if len(written) > 1:
        listed = ", ".join(f"`{name}`" for name in written)
        yield driven.place.finding(
            f"writes {len(written)} `tokens` outputs ({listed}); a call hands back one",
            *(f"buffer {name}" for name in written),
        )


def width(driven: Driven) -> Iterator[Finding]:
    """An output of several tokens for each sequence has one for each of its rows."""
    for name in driven.written("tokens"):
        wide, per_call = _width(driven, name), driven.batch.rows
        if wide > 1 and wide != per_call:
            yield driven.place.finding(
                f"hands back `{name}`, {wide} tokens for each sequence, but its `batch.rows` is "
                f"{per_call}, expected {wide}",
                f"buffer {name}",
                at="/batch/rows",
            )


def count(driven: Driven) -> Iterator[Finding]:
    """A `count` output counts a `tokens` output of several for each sequence."""
    widths = [_width(driven, name) for name in driven.written("tokens")]
    for name in driven.written("count") if not any(wide > 1 for wide in widths) else ():
        yield driven.place.finding(
            f"writes `{name}` (fill `count`), but no `tokens` output of several for each "
            f"sequence to count",
            f"buffer {name}",
        )


def context(driven: Driven) -> Iterator[Finding]:
    """`context` is a var of its own, not one that sizes the call."""
    named = driven.batch.context
    if named is not None and driven.reading.axes.counted_by(named) is not None:
        yield driven.place.finding(
            f"has var `{named}` as `batch.context`, which sizes the call itself; the context "
            f"needs a var of its own",
            f"var {named}",
            at="/batch/context",
        )


def one_context(reading: Reading) -> Iterator[Finding]:
    """One var bounds the context of every program."""
    first: Driven | None = None
    for driven in each_driven(reading):
        named = driven.batch.context
        first = driven if first is None and named is not None else first
        if first is not None and named not in {None, first.batch.context}:
            yield driven.place.finding(
                f"has var `{named}` as `batch.context`, but program `{first.name}` has "
                f"`{first.batch.context}`; one var bounds every context",
                f"program {first.name}",
                at="/batch/context",
            )


def callable_shape(reading: Reading) -> Iterator[Finding]:
    """No two programs take the same groups and rows."""
    first: dict[tuple[int, int | str], str] = {}
    for driven in each_driven(reading):
        key = driven.batch.groups, driven.batch.rows
        other = first.setdefault(key, driven.name)
        if other != driven.name:
            yield driven.place.finding(
                f"takes calls of the same shape as program `{other}`; a shape names one program",
                f"program {other}",
                at="/batch",
            )


def driven_at_all(reading: Reading) -> Iterator[Finding]:
    """Some program has a `batch`."""
    if next(each_driven(reading), None) is None:
        yield Finding(
            "no program declares a `batch`: there is nothing for a serving loop to drive",
            "/programs",
            (),
        )


def handed_back(reading: Reading) -> Iterator[Finding]:
    """Some driven program writes tokens, unless the caller samples or a later stage does."""
    driven = list(each_driven(reading))
    if not driven or not reading.sampled or reading.earlier_stage:
        return
    if not any(each.written("tokens") for each in driven):
        listed = ", ".join(f"`{each.name}`" for each in driven)
        yield Finding(
            f"no program with a `batch` ({listed}) writes a `tokens` output: no call hands a token "
            f"back",
            "/programs",
            tuple(f"program {each.name}" for each in driven),
        )


def _width(driven: Driven, name: str) -> int:
    buffer = driven.reading.manifest.buffers[name]
    role = role_of(name, buffer, "tokens", driven.reading.axes)
    return role.width if role else 1


PROGRAM_ROWS: Rows[Reading] = (
    Each(
        each_driven,
        (
            Rule("R-rows", "programs", rows),
            Rule("R-rows-var", "programs", rows_var),
            Rule("R-split", "programs", split),
            Rule("R-groups", "programs", groups),
            Rule("R-emits", "programs", emits),
            Rule("R-width", "programs", width),
            Rule("R-count", "programs", count),
            Rule("R-context", "programs", context),
        ),
    ),
    Rule("R-one-context", "programs", one_context),
    Rule("R-callable", "programs", callable_shape),
    Rule("R-batch", "programs", driven_at_all),
    Rule("R-hands-back", "programs", handed_back),
)
