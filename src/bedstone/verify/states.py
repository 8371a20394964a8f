"""States: how each is sized, and the layout of one the host supplies."""

from collections.abc import Iterator
from dataclasses import dataclass

from bedstone.spec.manifest import HostTensor, State
from bedstone.verify.facts import Named
from bedstone.verify.rule import Each, Finding, Place, Rows, Rule, listed
from bedstone.verify.sizes import row_span


def sizes_set(state: State) -> tuple[str, ...]:
    """The names of the sizes that are not 0."""
    sizes = {
        "bytes_per_token": state.bytes_per_token,
        "bytes": state.bytes,
        "bytes_per_seq": state.bytes_per_seq,
    }
    return tuple(name for name, size in sizes.items() if size)


@dataclass(frozen=True, slots=True)
class HostSite:
    """The layout of a host state that sets no size of its own."""

    place: Place
    host: HostTensor


def sized(state: Named[State]) -> Iterator[Finding]:
    """A state without `host` sets one of its sizes."""
    if state.value.host is None and not sizes_set(state.value):
        yield state.place.finding(
            "has no size, expected one of `bytes_per_token`, `bytes`, `bytes_per_seq` or `host`"
        )


def sized_once(state: Named[State]) -> Iterator[Finding]:
    """A state without `host` sets only one of its sizes."""
    found = sizes_set(state.value)
    if state.value.host is None and len(found) > 1:
        yield state.place.finding(f"sets {listed(found)}, expected one of them")


def sized_by_host(state: Named[State]) -> Iterator[Finding]:
    """A host state sets no size of its own."""
    found = sizes_set(state.value)
    if state.value.host is not None and found:
        yield state.place.finding(
            f"has a `host` layout and sets {listed(found)}, expected the layout alone"
        )


def as_host(state: Named[State]) -> Iterator[HostSite]:
    """The host layout to measure, if there is one."""
    host = state.value.host
    if host is not None and not sizes_set(state.value):
        yield HostSite(state.place.inner("host", "/host"), host)


def extents_match_strides(site: HostSite) -> Iterator[Finding]:
    """A host layout has as many strides as extents, and at least one."""
    if not _is_layout(site.host):
        extents, strides = len(site.host.shape), len(site.host.strides)
        yield site.place.finding(
            f"has {extents} extents and {strides} strides, expected as many of each, at least one"
        )


def as_layout(site: HostSite) -> Iterator[HostSite]:
    """The layout, when its extents and strides can be paired."""
    if _is_layout(site.host):
        yield site


def _is_layout(host: HostTensor) -> bool:
    return len(host.shape) == len(host.strides) > 0


def inner_extents_nonzero(site: HostSite) -> Iterator[Finding]:
    """Only the outermost extent is 0, which leaves the count to the host."""
    if 0 in site.host.shape[1:]:
        yield site.place.finding(
            f"has shape {list(site.host.shape)}, expected 0 as the outermost extent only",
            at="/shape",
        )


def strides_nonzero(site: HostSite) -> Iterator[Finding]:
    """No stride is 0, which would lay elements over each other."""
    if 0 in site.host.strides:
        yield site.place.finding(
            f"has strides {list(site.host.strides)}, expected none to be 0", at="/strides"
        )


def span_fits(site: HostSite) -> Iterator[Finding]:
    """One outermost row spans fewer than 2^64 bytes."""
    if row_span(site.host) is None:
        yield site.place.finding(
            f"spans 2^64 bytes or more with shape {list(site.host.shape)} "
            f"and strides {list(site.host.strides)}"
        )


STATE_ROWS: Rows[Named[State]] = (
    Rule("S1", "states", sized),
    Rule("S2", "states", sized_once),
    Rule("S3", "states", sized_by_host),
    Each(
        as_host,
        (
            Rule("S4", "states", extents_match_strides),
            Each(
                as_layout,
                (
                    Rule("S5", "states", inner_extents_nonzero),
                    Rule("S6", "states", strides_nonzero),
                    Rule("S7", "states", span_fits),
                ),
            ),
        ),
    ),
)
