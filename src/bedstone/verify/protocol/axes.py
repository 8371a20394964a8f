"""The three things a call counts, and the vars that count them."""

from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import Axis, Manifest


class AxisVar(Frozen):
    """The var that counts an axis, and the most it may be.

    `name` is None in a stage of a cut none of whose calls reads that var; its programs bound it.
    """

    name: str | None
    max: int


class Axes(Frozen):
    """The var of each axis.

    `rows` counts this rank's rows of a call, `groups` its sequences, `ranks` the rows of every
    member of the rank group, this rank's first.
    """

    rows: AxisVar | None
    groups: AxisVar | None
    ranks: AxisVar | None

    @staticmethod
    def of(manifest: Manifest) -> "Axes":
        """The axes of a verified manifest, where one var at most counts each."""
        by_axis = {v.axis: AxisVar(name, v.max) for name, v in manifest.vars.items()}
        return Axes(by_axis.get("rows"), by_axis.get("groups"), by_axis.get("ranks"))

    def var(self, axis: Axis) -> AxisVar | None:
        """The var that counts `axis`."""
        return {"rows": self.rows, "groups": self.groups, "ranks": self.ranks}[axis]

    def counted_by(self, var: str) -> Axis | None:
        """The axis `var` counts; None for a var that sizes something else."""
        axes: tuple[Axis, ...] = ("rows", "groups", "ranks")
        return next((a for a in axes if (v := self.var(a)) and v.name == var), None)

    def spelled(self, axis: Axis) -> str:
        """The var's name as a shape spells it, or `<axis>` where no var counts it."""
        var = self.var(axis)
        return (var and var.name) or f"<{axis}>"
