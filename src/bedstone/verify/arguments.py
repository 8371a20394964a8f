"""Launch arguments: each parameter gets something of its kind, written before it is read."""

from collections.abc import Iterator
from dataclasses import dataclass

from bedstone.spec.manifest import (
    BufferParam,
    Launch,
    LaunchArg,
    Op,
    ParamArg,
    ParamType,
    Rank,
    ScalarParam,
    Scratch,
    ScratchArg,
)
from bedstone.verify.binding import (
    Literal,
    direction,
    interface,
    launch_bindings,
    literal_type,
    reads,
    same_kind,
    takes_rank,
    writes,
)
from bedstone.verify.dataflow import Moment, OpFlow
from bedstone.verify.launches import LaunchSite
from bedstone.verify.rule import Each, Finding, Place, Rows, Rule
from bedstone.verify.topology import GROUP_USE_ROWS, GroupUse


@dataclass(frozen=True, slots=True)
class ArgSite:
    """One argument of a launch and the parameter it meets."""

    site: LaunchSite[Launch]
    index: int
    param: ParamType
    arg: LaunchArg

    @property
    def place(self) -> Place:
        """The argument's own place."""
        written = self.site.launch.args is not None
        pointer = f"/args/{self.index}" if written else ""
        return self.site.place.inner(f"arg #{self.index}", pointer)

    @property
    def op(self) -> Op:
        """The op whose interface is forwarded."""
        return self.site.op.value

    @property
    def flow(self) -> OpFlow:
        """The first writes of the op."""
        return self.site.facts.ops[self.site.op.name].flow

    @property
    def moment(self) -> Moment:
        """When the argument is used within its op."""
        return (self.site.index, self.index)


@dataclass(frozen=True, slots=True)
class Forwarded:
    """An interface parameter forwarded to a launch parameter of its kind."""

    site: ArgSite
    index: int
    interface: ParamType


@dataclass(frozen=True, slots=True)
class ScratchUse:
    """A scratch of the op bound to a buffer parameter."""

    site: ArgSite
    name: str
    scratch: Scratch
    param: BufferParam


@dataclass(frozen=True, slots=True)
class LiteralUse:
    """A literal bound to a parameter."""

    site: ArgSite
    literal: Literal


def each_arg(site: LaunchSite[Launch]) -> Iterator[ArgSite]:
    """The launch's arguments in order, when there are as many as parameters."""
    for index, (param, arg) in enumerate(launch_bindings(site.op.value, site.launch)):
        yield ArgSite(site, index, param, arg)


def forwards_a_param(site: ArgSite) -> Iterator[Finding]:
    """A forwarded parameter is one of the interface's."""
    if isinstance(site.arg, ParamArg) and interface(site.op, site.arg.param) is None:
        yield site.place.finding(
            f"forwards interface param #{site.arg.param}, but the interface has "
            f"{len(site.op.params)}"
        )


def forwards_same_kind(site: ArgSite) -> Iterator[Finding]:
    """A forwarded parameter is of the launch parameter's kind and dtype."""
    if isinstance(site.arg, ParamArg):
        outer = interface(site.op, site.arg.param)
        if outer is not None and not same_kind(outer, site.param):
            yield site.place.finding(
                f"forwards interface param #{site.arg.param}, `{outer}`, expected `{site.param}`"
            )


def as_forwarded(site: ArgSite) -> Iterator[Forwarded]:
    """The parameter forwarded, when it is of the right kind."""
    if isinstance(site.arg, ParamArg):
        outer = interface(site.op, site.arg.param)
        if outer is not None and same_kind(outer, site.param):
            yield Forwarded(site, site.arg.param, outer)


def in_is_not_written(forwarded: Forwarded) -> Iterator[Finding]:
    """A launch does not write through an `in` parameter of the interface."""
    if direction(forwarded.interface) == "in" and writes(forwarded.site.param):
        yield forwarded.site.place.finding(
            f"writes through interface param #{forwarded.index}, `{forwarded.interface}`, "
            "expected `out` or `inout`"
        )


def out_is_written_first(forwarded: Forwarded) -> Iterator[Finding]:
    """A launch reads an `out` parameter only after an earlier argument wrote it."""
    first = forwarded.site.flow.params.get(forwarded.index)
    if (
        direction(forwarded.interface) == "out"
        and reads(forwarded.site.param)
        and not (first is not None and first < forwarded.site.moment)
    ):
        yield forwarded.site.place.finding(
            f"reads interface param #{forwarded.index}, `{forwarded.interface}`, "
            "expected an earlier write"
        )


def scratch_known(site: ArgSite) -> Iterator[Finding]:
    """A scratch is one of the op's."""
    if isinstance(site.arg, ScratchArg) and site.arg.scratch not in site.op.impl.scratch:
        yield site.place.finding(
            f"names unknown scratch `{site.arg.scratch}`", f"scratch {site.arg.scratch}"
        )


def scratch_is_a_buffer(site: ArgSite) -> Iterator[Finding]:
    """A scratch is bound to a buffer parameter."""
    if (
        isinstance(site.arg, ScratchArg)
        and site.arg.scratch in site.op.impl.scratch
        and not isinstance(site.param, BufferParam)
    ):
        yield site.place.finding(
            f"binds scratch `{site.arg.scratch}` to `{site.param}`, expected a buffer parameter",
            f"scratch {site.arg.scratch}",
        )


def as_scratch(site: ArgSite) -> Iterator[ScratchUse]:
    """The scratch bound, when it exists and the parameter is a buffer."""
    if isinstance(site.arg, ScratchArg) and isinstance(site.param, BufferParam):
        scratch = site.op.impl.scratch.get(site.arg.scratch)
        if scratch is not None:
            yield ScratchUse(site, site.arg.scratch, scratch, site.param)


def scratch_dtype(use: ScratchUse) -> Iterator[Finding]:
    """A scratch has the parameter's dtype."""
    if use.scratch.dtype != use.param.dtype:
        yield use.site.place.finding(
            f"binds scratch `{use.name}` of {use.scratch.dtype}, expected {use.param.dtype}",
            f"scratch {use.name}",
        )


def scratch_written_first(use: ScratchUse) -> Iterator[Finding]:
    """A scratch is read only after an earlier argument wrote it."""
    first = use.site.flow.scratch.get(use.name)
    if reads(use.param) and not (first is not None and first < use.site.moment):
        yield use.site.place.finding(
            f"reads scratch `{use.name}`, expected an earlier write", f"scratch {use.name}"
        )


def as_literal(site: ArgSite) -> Iterator[LiteralUse]:
    """The literal bound, if it is one."""
    if isinstance(site.arg, Literal):
        yield LiteralUse(site, site.arg)


def literal_matches(use: LiteralUse) -> Iterator[Finding]:
    """A literal is bound to a scalar of its own type."""
    found = literal_type(use.literal)
    if use.site.param != ScalarParam(found):
        yield use.site.place.finding(
            f"is the {found} literal {use.literal.value}, expected one for `{use.site.param}`"
        )


def rank_is_an_integer(site: ArgSite) -> Iterator[Finding]:
    """A rank is bound to an i32 or an i64."""
    if isinstance(site.arg, Rank) and not takes_rank(site.param):
        yield site.place.finding(
            f"binds the rank in `{site.arg.group}` to `{site.param}`, expected i32 or i64"
        )


def rank_group(site: ArgSite) -> Iterator[GroupUse]:
    """The group whose rank is passed, if one is."""
    if isinstance(site.arg, Rank):
        yield GroupUse(site.site.facts, site.place, site.arg.group)


ARG_ROWS: Rows[ArgSite] = (
    Rule("A2", "arguments", forwards_a_param),
    Rule("A3", "arguments", forwards_same_kind),
    Each(
        as_forwarded,
        (
            Rule("A4", "arguments", in_is_not_written),
            Rule("A5", "arguments", out_is_written_first),
        ),
    ),
    Rule("A6", "arguments", scratch_known),
    Rule("A7", "arguments", scratch_is_a_buffer),
    Each(
        as_scratch,
        (
            Rule("A8", "arguments", scratch_dtype),
            Rule("A9", "arguments", scratch_written_first),
        ),
    ),
    Each(as_literal, (Rule("A10", "arguments", literal_matches),)),
    Rule("A11", "arguments", rank_is_an_integer),
    Each(rank_group, GROUP_USE_ROWS),
)
