"""Geometry: blocks, grids, shared memory and clusters a kernel is launched with.

Limits hold with every var at its max; a grid is not empty and fits its clusters at both corners.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from bedstone.spec.expr import ExprError, evaluate
from bedstone.spec.manifest import Expr, KernelLaunch, Launch
from bedstone.verify.expressions import EXPR_ROWS, ExprSite
from bedstone.verify.launches import LaunchSite, as_kernel
from bedstone.verify.rule import Each, Finding, Place, Rows, Rule
from bedstone.verify.sizes import value_at

BLOCK_THREADS = 1024
BLOCK_DEPTH = 64
CLUSTER_BLOCKS = 16
SHARED_BYTES = 232_448
GRID_LIMITS = (2**31 - 1, 65_535, 65_535)
AXES = "xyz"

KernelSite = LaunchSite[KernelLaunch]


@dataclass(frozen=True, slots=True)
class GridAxis:
    """One axis of a launch's grid."""

    site: KernelSite
    index: int
    expr: Expr

    @property
    def place(self) -> Place:
        """The axis's own place."""
        return self.site.place.inner(f"grid.{AXES[self.index]}", f"/grid/{self.index}")


def entry_not_empty(site: KernelSite) -> Iterator[Finding]:
    """A kernel has an entry."""
    if not site.launch.entry:
        yield site.place.finding("has an empty entry", at="/entry")


def extern_has_no_module(site: KernelSite) -> Iterator[Finding]:
    """A kernel of a module is not a built-in."""
    if site.launch.entry.startswith("extern:"):
        yield site.place.finding(
            f"names module `{site.launch.module}` and a built-in, expected one of the two",
            at="/entry",
        )


def module_known(site: KernelSite) -> Iterator[Finding]:
    """A kernel's module exists."""
    if site.launch.module not in site.facts.manifest.modules:
        yield site.place.finding(
            f"names unknown module `{site.launch.module}`",
            f"module {site.launch.module}",
            at="/module",
        )


def block_fits(site: KernelSite) -> Iterator[Finding]:
    """A block has from 1 to 1024 threads."""
    block = site.launch.block
    if not 1 <= math.prod(block) <= BLOCK_THREADS:
        yield site.place.finding(
            f"has block {list(block)} of {math.prod(block)} threads, expected 1 to {BLOCK_THREADS}",
            at="/block",
        )


def block_depth_fits(site: KernelSite) -> Iterator[Finding]:
    """A block is at most 64 deep."""
    depth = site.launch.block[2]
    if depth > BLOCK_DEPTH:
        yield site.place.finding(
            f"has block.z {depth}, expected at most {BLOCK_DEPTH}", at="/block/2"
        )


def each_axis(site: KernelSite) -> Iterator[GridAxis]:
    """The grid's axes: x, y, z."""
    for index, expr in enumerate(site.launch.grid):
        yield GridAxis(site, index, expr)


def axis_expr(axis: GridAxis) -> Iterator[ExprSite]:
    """The axis as an expression."""
    yield ExprSite(axis.site.facts, axis.place, axis.expr)


def grid_fits(axis: GridAxis) -> Iterator[Finding]:
    """A grid is within the device's limit."""
    value, limit = value_at(axis.expr, axis.site.facts.upper), GRID_LIMITS[axis.index]
    if value is not None and value > limit:
        yield axis.place.finding(f"is {value} with every var at its max, expected at most {limit}")


def grid_not_empty(axis: GridAxis) -> Iterator[Finding]:
    """A grid has a block on each axis with every var at 1."""
    if value_at(axis.expr, axis.site.facts.lower) == 0:
        yield axis.place.finding("is 0 with every var at 1, expected at least 1")


def grid_computable(axis: GridAxis) -> Iterator[Finding]:
    """A grid does not overflow u64."""
    if _overflows(axis):
        yield axis.place.finding("overflows 64 bits with every var at its max")


def _overflows(axis: GridAxis) -> bool:
    try:
        evaluate(axis.expr, axis.site.facts.upper)
    except ExprError as error:
        return str(error) == "arithmetic overflow"
    return False


def shared_expr(site: KernelSite) -> Iterator[ExprSite]:
    """The shared memory as an expression, if it is given."""
    if site.launch.shared_mem is not None:
        place = site.place.inner("shared_mem", "/shared_mem")
        yield ExprSite(site.facts, place, site.launch.shared_mem)


def shared_fits(shared: ExprSite) -> Iterator[Finding]:
    """Shared memory is within what a kernel can opt in to."""
    value = value_at(shared.expr, shared.facts.upper)
    if value is not None and value > SHARED_BYTES:
        yield shared.place.finding(
            f"is {value} bytes with every var at its max, expected at most {SHARED_BYTES}"
        )


def cluster_fits(site: KernelSite) -> Iterator[Finding]:
    """A cluster has from 1 to 16 blocks."""
    cluster = site.launch.cluster
    if cluster is not None and not _is_cluster(cluster):
        yield site.place.finding(
            f"has cluster {list(cluster)} of {math.prod(cluster)} blocks, "
            f"expected 1 to {CLUSTER_BLOCKS}",
            at="/cluster",
        )


def cluster_divides_grid(site: KernelSite) -> Iterator[Finding]:
    """A grid is a whole number of clusters on each axis."""
    cluster = site.launch.cluster
    if cluster is None or not _is_cluster(cluster):
        return
    for axis in each_axis(site):
        for env, corner in ((site.facts.upper, "its max"), (site.facts.lower, "1")):
            value = value_at(axis.expr, env)
            if value is not None and value % cluster[axis.index]:
                yield axis.place.finding(
                    f"is {value} with every var at {corner}, expected a multiple of "
                    f"cluster.{AXES[axis.index]}, {cluster[axis.index]}"
                )


def _is_cluster(cluster: tuple[int, int, int]) -> bool:
    return 1 <= math.prod(cluster) <= CLUSTER_BLOCKS


GEOMETRY_ROWS: Rows[LaunchSite[Launch]] = (
    Each(
        as_kernel,
        (
            Rule("G1", "geometry", entry_not_empty),
            Rule("G2", "geometry", extern_has_no_module),
            Rule("G4", "geometry", module_known),
            Rule("G5", "geometry", block_fits),
            Rule("G6", "geometry", block_depth_fits),
            Each(
                each_axis,
                (
                    Each(axis_expr, EXPR_ROWS),
                    Rule("G7", "geometry", grid_fits),
                    Rule("G9", "geometry", grid_computable),
                    Rule("G8", "geometry", grid_not_empty),
                ),
            ),
            Each(shared_expr, (*EXPR_ROWS, Rule("G10", "geometry", shared_fits))),
            Rule("G11", "geometry", cluster_fits),
            Rule("G12", "geometry", cluster_divides_grid),
        ),
    ),
)
