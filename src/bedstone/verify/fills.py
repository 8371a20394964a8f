"""Fills: which buffers the serving loop writes and reads, and in what type."""

from collections.abc import Iterator
from dataclasses import dataclass

from bedstone.spec.dtype import DType
from bedstone.spec.manifest import Buffer, Fill
from bedstone.verify.facts import Facts, Named, each_buffer
from bedstone.verify.rule import Each, Finding, Place, Rows, Rule

OUTPUT_FILLS: frozenset[Fill] = frozenset({"tokens", "count", "error"})

INTEGERS: tuple[DType, ...] = ("i32", "i64")
SAMPLING_DTYPES: dict[Fill, tuple[DType, ...]] = {
    "temperature": ("f32",),
    "top_k": ("i32",),
    "top_p": ("f32",),
    "min_p": ("f32",),
    "seed": ("i64",),
}
"""The dtypes of the fills that are not plain integers."""


@dataclass(frozen=True, slots=True)
class FillSite:
    """A buffer with a fill."""

    buffer: Named[Buffer]
    fill: Fill

    @property
    def place(self) -> Place:
        """The fill's own place."""
        return self.buffer.place.inner(f"fill `{self.fill}`", "/fill")


def as_fill(buffer: Named[Buffer]) -> Iterator[FillSite]:
    """The buffer's fill, if it has one."""
    if buffer.value.fill is not None:
        yield FillSite(buffer, buffer.value.fill)


def each_fill(facts: Facts) -> Iterator[FillSite]:
    """Every fill of the manifest, by buffer name."""
    for buffer in each_buffer(facts):
        yield from as_fill(buffer)


def fill_matches_side(site: FillSite) -> Iterator[Finding]:
    """A fill the loop writes sits on an input, one it reads on an output."""
    kind = site.buffer.value.kind
    wanted = "output" if site.fill in OUTPUT_FILLS else "input"
    if kind in {"input", "output"} and kind != wanted:
        yield site.place.finding(f"is on an {kind}, expected an {wanted}")


def fill_on_an_edge(site: FillSite) -> Iterator[Finding]:
    """Only an input or an output has a fill."""
    kind = site.buffer.value.kind
    if kind not in {"input", "output"}:
        yield site.place.finding(f"is on a buffer of kind `{kind}`, expected input or output")


def fill_dtype(site: FillSite) -> Iterator[Finding]:
    """A fill is held in a dtype its values have."""
    dtype = site.buffer.value.dtype
    wanted = SAMPLING_DTYPES.get(site.fill, INTEGERS)
    if dtype not in wanted:
        yield site.place.finding(f"is held in {dtype}, expected {' or '.join(wanted)}")


def no_blocks_when_dealt(site: FillSite) -> Iterator[Finding]:
    """No fill splits the batch into members' blocks once a state deals positions."""
    deal = site.buffer.facts.deal
    if deal is not None and site.fill == "blocks":
        yield site.place.finding(
            f"splits the batch into members' blocks, but state `{deal.state}` deals positions over "
            f"group `{deal.group}`, whose members all take the same rows",
            f"state {deal.state}",
            f"group {deal.group}",
        )


FILL_ROWS: Rows[Named[Buffer]] = (
    Each(
        as_fill,
        (
            Rule("L1", "fills", fill_matches_side),
            Rule("L2", "fills", fill_on_an_edge),
            Rule("L3", "fills", fill_dtype),
        ),
    ),
)
DEALT_FILL_ROWS: Rows[Facts] = (Each(each_fill, (Rule("L4", "fills", no_blocks_when_dealt),)),)
