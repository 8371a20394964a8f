"""Ops: an interface of buffers, states and scalars, and launches that carry it out."""

from collections.abc import Iterator

from bedstone.spec.manifest import BytesParam, Op, Pack, ScratchArg
from bedstone.verify.arguments import ARG_ROWS, each_arg
from bedstone.verify.binding import direction, launch_bindings
from bedstone.verify.buffers import SHAPE_ROWS, Shaped
from bedstone.verify.facts import Named
from bedstone.verify.geometry import GEOMETRY_ROWS
from bedstone.verify.launches import ARITY_ROWS, EXTERN_ROWS, WHEN_ROWS, each_launch
from bedstone.verify.packs import FIELD_ROWS, PACK_ROWS, as_pack, each_field
from bedstone.verify.rule import Each, Finding, Rows, Rule, escape
from bedstone.verify.tensormaps import MAP_ROWS


def no_bytes_in_interface(op: Named[Op]) -> Iterator[Finding]:
    """An interface takes no packs: they are assembled within a launch."""
    for index, param in enumerate(op.value.params):
        if isinstance(param, BytesParam):
            yield op.place.finding(
                f"has interface param #{index} of `{param}`, expected a buffer, state or scalar",
                at=f"/params/{index}",
            )


def each_scratch(op: Named[Op]) -> Iterator[Shaped]:
    """The op's scratch buffers by name, as arrays."""
    for name in sorted(op.value.impl.scratch):
        scratch = op.value.impl.scratch[name]
        place = op.place.inner(
            f"scratch `{name}`", f"/impl/scratch/{escape(name)}", f"scratch {name}"
        )
        yield Shaped(op.facts, place, scratch.dtype, scratch.shape)


def has_launches(op: Named[Op]) -> Iterator[Finding]:
    """An op has at least one launch."""
    if not op.value.impl.launches:
        yield op.place.finding("has no launches, expected at least one", at="/impl/launches")


def outs_are_written(op: Named[Op]) -> Iterator[Finding]:
    """Some launch writes each `out` parameter of the interface."""
    written = op.facts.ops[op.name].flow.params
    for index, param in enumerate(op.value.params):
        if direction(param) == "out" and index not in written:
            yield op.place.finding(
                f"never writes interface param #{index}, `{param}`", at=f"/params/{index}"
            )


def scratch_is_used(op: Named[Op]) -> Iterator[Finding]:
    """Some launch uses each scratch."""
    used = set(_scratch_names(op.value))
    for name in sorted(op.value.impl.scratch.keys() - used):
        yield op.place.finding(
            f"never uses scratch `{name}`",
            f"scratch {name}",
            at=f"/impl/scratch/{escape(name)}",
        )


def _scratch_names(op: Op) -> Iterator[str]:
    for launch in op.impl.launches:
        for _, arg in launch_bindings(op, launch):
            sources = [f.source for f in arg.fields] if isinstance(arg, Pack) else [arg]
            yield from (s.scratch for s in sources if isinstance(s, ScratchArg))


LAUNCH_ROWS = (
    *WHEN_ROWS,
    *EXTERN_ROWS,
    *GEOMETRY_ROWS,
    *ARITY_ROWS,
    Each(
        each_arg,
        (
            *ARG_ROWS,
            Each(as_pack, (*PACK_ROWS, Each(each_field, (*FIELD_ROWS, *MAP_ROWS)))),
        ),
    ),
)
OP_ROWS: Rows[Named[Op]] = (
    Rule("O1", "ops", no_bytes_in_interface),
    Each(each_scratch, SHAPE_ROWS),
    Rule("O3", "ops", has_launches),
    Each(each_launch, LAUNCH_ROWS),
    Rule("O4", "ops", outs_are_written),
    Rule("O5", "ops", scratch_is_used),
)
