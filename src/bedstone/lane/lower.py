"""From what the optimizer leaves to launches in order, and the tensors they read in place."""

from collections.abc import Mapping
from dataclasses import replace

from bedstone.graph.step import Part
from bedstone.lane.body import Body
from bedstone.lane.errors import NoLaunchError
from bedstone.lane.fit import fitted
from bedstone.lane.launch import OneLaunch, Read
from bedstone.lane.layout import View
from bedstone.lane.link import link, shares
from bedstone.lane.schedule import Step
from bedstone.lane.shim import Shim
from bedstone.lane.touch import Leaf, reads_of, rewrite
from bedstone.lane.views import find_views, is_taken


def link_body(body: Body, shim: Shim) -> tuple[tuple[Step, ...], Mapping[str, View]]:
    """The launches of every node, in order, and the tensors that are views.

    A part that some reader cannot follow is copied, for all its readers. What a caller takes is
    memory of its own.
    """
    apart = set(body.facts.graph.outputs)
    while True:
        views = find_views(body, apart)
        steps, lost = _linked(body, shim, views)
        if not lost:
            return _alike(steps, views), views
        apart |= lost


def _alike(steps: tuple[Step, ...], views: Mapping[str, View]) -> tuple[Step, ...]:
    """The steps, all readers of a part's quantized form reading the same one.

    One that cannot follow it in its tensor's form needs the part quantized by itself.
    """
    alone = {
        read.tensor
        for step in steps
        for read in reads_of(step.launch)
        if read.form == "quant" and read.tensor in views
        if read.window != views[read.tensor].layout.window
    }

    def beside(leaf: Leaf) -> Leaf:
        if isinstance(leaf, Read) and leaf.form == "quant" and leaf.tensor in alone:
            return replace(leaf, window=None)
        return leaf

    return tuple(replace(step, launch=rewrite(step.launch, beside)) for step in steps)


def _linked(body: Body, shim: Shim, views: Mapping[str, View]) -> tuple[tuple[Step, ...], set[str]]:
    """The launches, and the parts that a launch the lane lacks would read."""
    steps: list[Step] = []
    lost: set[str] = set()
    for key in body.order():
        node = body.nodes[key]
        if is_taken(node.op) and node.op.out in views:
            continue
        launches = [
            fitted(one, views, shim, body.facts.coding) for one in link(node.op, body.facts)
        ]
        for launch, ops in zip(launches, shares(node.op, node.sources), strict=True):
            why = shim.lacks(launch)
            parts = _parts(launch)
            if why is not None and not parts:
                raise NoLaunchError(key, body.facts.graph.ops[key].out, why)
            lost |= parts if why is not None else set()
            steps.append(Step(launch, ops, (key,)))
    return tuple(steps), {part for name in lost for part in _taken_from(name, body)}


def _parts(launch: OneLaunch) -> set[str]:
    return {read.tensor for read in reads_of(launch) if read.window is not None}


def _taken_from(name: str, body: Body) -> set[str]:
    """The part that a tensor is a row of, or is itself."""
    maker = body.maker(name)
    op = None if maker is None else body.nodes[maker].op
    if op is None or not is_taken(op):
        return set()
    return {op.out} if isinstance(op, Part) else _taken_from(op.x, body)
