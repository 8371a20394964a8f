"""Domains: what the elements of a buffer may be."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bedstone.spec.dtype import DType
from bedstone.spec.manifest import Bound, Buffer, Domain
from bedstone.verify.expressions import EXPR_ROWS, ExprSite
from bedstone.verify.facts import Facts, Named
from bedstone.verify.rule import Each, Finding, Place, Rows, Rule
from bedstone.verify.sizes import value_at

INTEGER_DTYPES: frozenset[DType] = frozenset({"i8", "i32", "u32", "i64", "u64", "u8"})


@dataclass(frozen=True, slots=True)
class DomainSite:
    """A buffer's domain."""

    buffer: Named[Buffer]
    domain: Domain

    @property
    def facts(self) -> Facts:
        """The manifest's facts."""
        return self.buffer.facts

    @property
    def place(self) -> Place:
        """The domain's own place."""
        return self.buffer.place.inner("domain", "/domain")


@dataclass(frozen=True, slots=True)
class Target:
    """What a domain indexes: an integer buffer's elements number its rows or lines."""

    site: DomainSite
    name: str

    @property
    def place(self) -> Place:
        """The place of the target's name."""
        return self.site.place.inner("`index_into`", "/index_into")

    @property
    def is_buffer(self) -> bool:
        """Whether a buffer has the name."""
        return self.name in self.site.facts.manifest.buffers

    @property
    def is_state(self) -> bool:
        """Whether a state has the name."""
        return self.name in self.site.facts.manifest.states


@dataclass(frozen=True, slots=True)
class BoundSite:
    """One end of a domain."""

    site: DomainSite
    end: str
    bound: Bound

    @property
    def place(self) -> Place:
        """The bound's own place."""
        return self.site.place.inner(f"`{self.end}`", f"/{self.end}")


def as_domain(buffer: Named[Buffer]) -> Iterator[DomainSite]:
    """The buffer's domain, if it has one."""
    if buffer.value.domain is not None:
        yield DomainSite(buffer, buffer.value.domain)


def _has_bounds(domain: Domain) -> bool:
    return domain.min is not None or domain.max is not None


def index_or_bounds(site: DomainSite) -> Iterator[Finding]:
    """A domain that indexes something has no bounds: the target sets them."""
    if site.domain.index_into is not None and _has_bounds(site.domain):
        yield site.place.finding("has `index_into` and `min` or `max`, expected one of the two")


def says_something(site: DomainSite) -> Iterator[Finding]:
    """A domain declares bounds, a target or monotone values."""
    domain = site.domain
    if domain.index_into is None and not domain.monotone and not _has_bounds(domain):
        yield site.place.finding("is empty, expected `min`, `max`, `index_into` or `monotone`")


def stride_nonzero(site: DomainSite) -> Iterator[Finding]:
    """A stride is at least 1."""
    if site.domain.stride == 0:
        yield site.place.finding("has `stride` 0, expected at least 1", at="/stride")


def stride_indexes(site: DomainSite) -> Iterator[Finding]:
    """Only a domain that indexes something has a stride."""
    if site.domain.stride > 1 and site.domain.index_into is None:
        yield site.place.finding(
            f"has `stride` {site.domain.stride} without `index_into`, expected both or neither",
            at="/stride",
        )


def as_target(site: DomainSite) -> Iterator[Target]:
    """What the domain indexes, if anything."""
    if site.domain.index_into is not None:
        yield Target(site, site.domain.index_into)


def integers_index(target: Target) -> Iterator[Finding]:
    """A buffer that indexes something holds integers."""
    dtype = target.site.buffer.value.dtype
    if dtype not in INTEGER_DTYPES:
        yield target.place.finding(f"is on a buffer of {dtype}, expected an integer dtype")


def target_known(target: Target) -> Iterator[Finding]:
    """The target is a buffer or a state."""
    if not target.is_buffer and not target.is_state:
        yield target.place.finding(
            f"names unknown `{target.name}`, expected a buffer or a state", f"target {target.name}"
        )


def target_unambiguous(target: Target) -> Iterator[Finding]:
    """The target's name is not shared by a buffer and a state."""
    if target.is_buffer and target.is_state:
        yield target.place.finding(
            f"names `{target.name}`, which is both a buffer and a state",
            f"buffer {target.name}",
            f"state {target.name}",
        )


def not_itself(target: Target) -> Iterator[Finding]:
    """A buffer does not index itself."""
    if target.name == target.site.buffer.name and not target.is_state:
        yield target.place.finding("names the buffer itself, expected another")


def lines_divide(target: Target) -> Iterator[Finding]:
    """Lines of a per-sequence state divide its bytes per sequence."""
    state = target.site.facts.manifest.states.get(target.name)
    stride = target.site.domain.stride
    if state is None or target.is_buffer or stride == 0:
        return
    if state.bytes_per_seq % stride:
        yield target.place.finding(
            f"cuts state `{target.name}` into lines of {stride} bytes, expected a divisor of its "
            f"{state.bytes_per_seq} bytes per sequence",
            f"state {target.name}",
        )


def monotone_is_flat(site: DomainSite) -> Iterator[Finding]:
    """A monotone buffer has one dimension."""
    rank = len(site.buffer.value.shape)
    if site.domain.monotone and rank != 1:
        yield site.place.finding(
            f"is `monotone` over {rank} dimensions, expected one", at="/monotone"
        )


def each_bound(site: DomainSite) -> Iterator[BoundSite]:
    """The bounds declared, `min` first."""
    for end, bound in (("min", site.domain.min), ("max", site.domain.max)):
        if bound is not None:
            yield BoundSite(site, end, bound)


def float_bounds_floats(bound: BoundSite) -> Iterator[Finding]:
    """A floating-point bound is set on a floating-point buffer."""
    dtype = bound.site.buffer.value.dtype
    if isinstance(bound.bound, float) and dtype in INTEGER_DTYPES:
        yield bound.place.finding(
            f"is the float {bound.bound} on a buffer of {dtype}, expected an integer"
        )


def bound_expr(bound: BoundSite) -> Iterator[ExprSite]:
    """The bound, when it is an expression."""
    if not isinstance(bound.bound, int | float):
        yield ExprSite(bound.site.facts, bound.place, bound.bound)


def bounds_ordered(site: DomainSite) -> Iterator[Finding]:
    """`min` is not above `max`, with the vars at 1 or at their max."""
    for env in (site.facts.lower, site.facts.upper):
        low, high = _bound_at(site.domain.min, env), _bound_at(site.domain.max, env)
        if low is not None and high is not None and float(low) > float(high):
            corner = "1" if env is site.facts.lower else "its max"
            yield site.place.finding(f"has min {low} above max {high} with every var at {corner}")
            return


def _bound_at(bound: Bound | None, env: Mapping[str, int]) -> float | None:
    return bound if bound is None or isinstance(bound, int | float) else value_at(bound, env)


DOMAIN_ROWS: Rows[Named[Buffer]] = (
    Each(
        as_domain,
        (
            Rule("D1", "domains", index_or_bounds),
            Rule("D2", "domains", says_something),
            Rule("D3", "domains", stride_nonzero),
            Rule("D4", "domains", stride_indexes),
            Each(
                as_target,
                (
                    Rule("D5", "domains", integers_index),
                    Rule("D6", "domains", target_known),
                    Rule("D7", "domains", target_unambiguous),
                    Rule("D8", "domains", not_itself),
                    Rule("D9", "domains", lines_divide),
                ),
            ),
            Rule("D10", "domains", monotone_is_flat),
            Each(
                each_bound,
                (Rule("D11", "domains", float_bounds_floats), Each(bound_expr, EXPR_ROWS)),
            ),
            Rule("D13", "domains", bounds_ordered),
        ),
    ),
)
