"""What the loop writes into an input, or reads from an output, and over which axis."""

from collections.abc import Callable, Mapping

from bedstone.spec.dtype import DType
from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import Axis, Buffer, Dim, Fill
from bedstone.verify.protocol.axes import Axes


class Role(Frozen):
    """A buffer with a fill.

    `over` is the axis its first dimension counts, None where it has a fixed number of entries;
    `entries` is the most of them; `width` is how many values one entry holds (more than 1 only for
    `tokens`). Values are encoded in `dtype`, little-endian.
    """

    buffer: str
    fill: Fill
    dtype: DType
    over: Axis | None
    entries: int
    width: int = 1


def role_of(name: str, buffer: Buffer, fill: Fill, axes: Axes) -> Role | None:
    """The role of a buffer with `fill`, or None where its shape is none that a fill takes."""
    first, rest = buffer.shape[0], buffer.shape[1:]
    width = rest[0] if rest else 1
    if len(rest) > 1 or isinstance(width, str):
        return None
    if isinstance(first, int):
        return Role(name, fill, buffer.dtype, None, first, width)
    axis = axes.counted_by(first)
    var = axes.var(axis) if axis else None
    return Role(name, fill, buffer.dtype, axis, var.max, width) if var else None


class Form(Frozen):
    """The shapes and the element type a fill takes.

    Either one entry for each element of an axis in `overs`, `wide` when a constant second
    dimension may follow; or a fixed number of entries within `length` (least, most).
    """

    overs: tuple[Axis, ...] = ()
    wide: bool = False
    length: Callable[[Axes], tuple[int, int | None]] | None = None
    dtype: DType | None = None

    def fits(self, role: Role | None, shape: tuple[Dim, ...], axes: Axes) -> bool:
        """Whether a buffer of `shape`, read as `role`, has this form."""
        if role is None or (len(shape) > 1 and not (self.wide and role.over == "groups")):
            return False
        if self.length is None:
            return role.over in self.overs
        least, most = self.length(axes)
        return role.over is None and least <= role.entries <= (most or role.entries)

    def spelled(self, axes: Axes) -> str:
        """The shapes in words."""
        if self.length is not None:
            least, most = self.length(axes)
            return f"[{least}]" if least == most else f"[n] with n at least {least}"
        shapes = [f"[{axes.spelled(axis)}]" for axis in self.overs]
        if self.wide:
            shapes.append(f"[{axes.spelled('groups')}, w]")
        return " or ".join(shapes)


def _prefix_sums(axes: Axes) -> tuple[int, None]:
    return (axes.groups.max + 1 if axes.groups else 2), None


_PER_ROW = Form(("rows",))
_PER_SEQUENCE = Form(("groups",))

FORMS: Mapping[Fill, Form] = {
    "token": Form(("rows", "ranks", "groups")),
    "position": _PER_ROW,
    "valid": _PER_ROW,
    "slot": _PER_ROW,
    "seq_len": _PER_SEQUENCE,
    "cu_seqlens": Form(length=_prefix_sums),
    "blocks": Form(length=lambda _: (2, None), dtype="i32"),
    "temperature": _PER_SEQUENCE,
    "top_k": _PER_SEQUENCE,
    "top_p": _PER_SEQUENCE,
    "min_p": _PER_SEQUENCE,
    "seed": _PER_SEQUENCE,
    "tokens": Form(("groups", "ranks"), wide=True),
    "count": _PER_SEQUENCE,
    "error": Form(length=lambda _: (1, 1), dtype="i32"),
}
