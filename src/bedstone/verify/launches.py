"""Launches: when each runs, and what every launch of an op is asked."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from bedstone.spec.manifest import BytesParam, ExternLaunch, KernelLaunch, Launch, Op, When
from bedstone.verify.binding import launch_args, launch_params
from bedstone.verify.facts import Facts, Named
from bedstone.verify.rule import Each, Finding, Place, Rows, Rule

LaunchT_co = TypeVar("LaunchT_co", bound=Launch, covariant=True)

PINNABLE = frozenset({"extern:cublaslt_bf16_tn", "extern:cublaslt_bf16_tn_acc"})
"""The built-ins whose algorithm a launch can pin."""


@dataclass(frozen=True, slots=True)
class LaunchSite(Generic[LaunchT_co]):
    """One launch of an op."""

    op: Named[Op]
    index: int
    launch: LaunchT_co

    @property
    def facts(self) -> Facts:
        """The manifest's facts."""
        return self.op.facts

    @property
    def place(self) -> Place:
        """The launch's own place."""
        text = f"launch #{self.index} (`{self.launch.entry}`)"
        return self.op.place.inner(text, f"/impl/launches/{self.index}")


@dataclass(frozen=True, slots=True)
class WhenSite:
    """A launch's condition."""

    facts: Facts
    place: Place
    when: When


def each_launch(op: Named[Op]) -> Iterator[LaunchSite[Launch]]:
    """The op's launches in order."""
    for index, launch in enumerate(op.value.impl.launches):
        yield LaunchSite(op, index, launch)


def as_when(site: LaunchSite[Launch]) -> Iterator[WhenSite]:
    """The launch's condition, if it has one."""
    if site.launch.when is not None:
        yield WhenSite(site.facts, site.place.inner("`when`", "/when"), site.launch.when)


def when_var_known(site: WhenSite) -> Iterator[Finding]:
    """A condition is on a var."""
    if site.when.var not in site.facts.upper:
        yield site.place.finding(
            f"names unknown var `{site.when.var}`", f"var {site.when.var}", at="/var"
        )


def when_range_not_empty(site: WhenSite) -> Iterator[Finding]:
    """A condition with two ends has a value between them."""
    low, high = site.when.min, site.when.max
    if low is not None and high is not None and low > high:
        yield site.place.finding(
            f"wants `{site.when.var}` in [{low}, {high}], expected a range with members",
            f"var {site.when.var}",
        )


def as_extern(site: LaunchSite[Launch]) -> Iterator[LaunchSite[ExternLaunch]]:
    """The launch, when it is a runtime built-in."""
    if isinstance(site.launch, ExternLaunch):
        yield LaunchSite(site.op, site.index, site.launch)


def as_kernel(site: LaunchSite[Launch]) -> Iterator[LaunchSite[KernelLaunch]]:
    """The launch, when it is a kernel of a module."""
    if isinstance(site.launch, KernelLaunch):
        yield LaunchSite(site.op, site.index, site.launch)


def built_in_is_extern(site: LaunchSite[ExternLaunch]) -> Iterator[Finding]:
    """A launch without a module is a built-in, `extern:<name>`."""
    if not site.launch.entry.startswith("extern:"):
        yield site.place.finding("has no module, expected one or an `extern:` entry", at="/entry")


def algo_pins_gemm(site: LaunchSite[ExternLaunch]) -> Iterator[Finding]:
    """Only a cuBLASLt bf16 product has its algorithm pinned."""
    if site.launch.algo is not None and site.launch.entry not in PINNABLE:
        yield site.place.finding(
            f"pins an algorithm, expected {' or '.join(sorted(PINNABLE))}",
            at="/algo",
        )


def built_in_takes_no_pack(site: LaunchSite[ExternLaunch]) -> Iterator[Finding]:
    """A built-in takes pointers and scalars, not a pack."""
    if any(isinstance(param, BytesParam) for param in launch_params(site.op.value, site.launch)):
        yield site.place.finding(
            "takes a pack, expected pointers and scalars for a built-in",
            at="" if site.launch.params is None else "/params",
        )


def one_argument_per_parameter(site: LaunchSite[Launch]) -> Iterator[Finding]:
    """A launch has one argument for each parameter."""
    params = len(launch_params(site.op.value, site.launch))
    args = len(launch_args(site.op.value, site.launch))
    if params != args:
        pointer = "/params" if site.launch.args is None else "/args"
        yield site.place.finding(f"has {args} arguments, expected {params}", at=pointer)


WHEN_ROWS: Rows[LaunchSite[Launch]] = (
    Each(
        as_when,
        (Rule("W1", "launches", when_var_known), Rule("W2", "launches", when_range_not_empty)),
    ),
)
EXTERN_ROWS: Rows[LaunchSite[Launch]] = (
    Each(
        as_extern,
        (Rule("G3", "launches", built_in_is_extern), Rule("W5", "launches", algo_pins_gemm)),
    ),
)
ARITY_ROWS: Rows[LaunchSite[Launch]] = (
    Each(as_extern, (Rule("A12", "launches", built_in_takes_no_pack),)),
    Rule("A1", "launches", one_argument_per_parameter),
)
