"""The tensors of a kernel as its Definition has them: how each lies in memory, read or written."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bedstone.library.kernel import MAPS, TABLES, Kernel, Param
from bedstone.library.mathematics.family import Family
from bedstone.spec import formula
from bedstone.spec.dtype import FORMATS, DType, Format
from bedstone.spec.manifest import BufferParam, BytesParam, ScalarParam, StateParam

_ELEMENTS = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i8": "int8",
             "u8": "uint8", "i32": "int32", "i64": "int64"}  # fmt: skip
_WEIGHTS = frozenset({"w", "w0", "w1", "w2", "w3", "wg", "wu", "wo", "wd", "sg", "su", "sw"})
_HALVES = {
    "q8_0": ((0,), 2e-3),
    "q4_0": ((0,), 2e-2),
    "q4_1": ((0, 2), 1e-2),
    "q4_k": ((0, 2), 4e-4),
    "q6_k": ((208,), 1e-4),
}
"""Where the half floats of a block lie, and how large they are where values are about 0.1."""

_BLOCK = 32


@dataclass(frozen=True, slots=True)
class Operand:
    """One tensor.

    `name` is the parameter's, `plain` what the mathematics calls its values. `shape` is how it lies
    in memory and `dense` its width in values. `piece` tells a quantized activation's codes (`q`),
    scales (`s`) and sums (`z`), of which bfloat16 codes have none; `format` names how a weight is
    stored in blocks, `panels` that its rows lie in panels.
    """

    name: str
    plain: str
    dtype: str
    shape: tuple[str, ...]
    dense: str
    read: bool
    written: bool
    piece: str = ""
    format: str | None = None
    panels: bool = False

    @property
    def rounded(self) -> bool:
        """Whether these are codes that are the values themselves."""
        return self.piece == "q" and self.dtype != "int8"

    @property
    def block(self) -> int:
        """Bytes of a block of the weight."""
        return FORMATS[self.format].block_bytes if self.format else 0  # type: ignore[index]

    @property
    def halves(self) -> tuple[tuple[int, ...], float] | None:
        """Where a block's half floats lie, and how large they are; None where it has none."""
        return _HALVES.get(self.format or "")

    @property
    def stored(self) -> tuple[str, str]:
        """Rows and bytes a row of the weight."""
        rows, width = self.shape
        return rows, width


def operands(kernel: Kernel, family: Family) -> list[Operand]:
    """Every tensor, in the order of the parameters."""
    fmt, panels = _format(kernel), kernel.layer is not None
    names = {param.name for param in kernel.params}
    cache = rounded_tables(kernel)
    return [
        replace(made, dtype=_ELEMENTS[cache])
        if cache and _is_table(param)
        else replace(made, panels=panels and made.format is not None)
        for param in kernel.params
        if not isinstance(param.type, ScalarParam) and param.name != MAPS
        for made in (_operand(param, family, fmt, names),)
    ]


def rounded_tables(kernel: Kernel) -> str | None:
    """What values of paged tables are rounded to, where the kernel is compiled for such tables."""
    return kernel.defines.get("BS_CACHE")


def rounded_codes(kernel: Kernel) -> DType | None:
    """What coded activations are rounded to, where codes are numbers and no scaled integers."""
    kinds = (p.type for p in kernel.params if p.name.endswith("q") and p.name != "q")
    found = (kind.dtype for kind in kinds if isinstance(kind, BufferParam))
    return next((dtype for dtype in found if dtype != "i8"), None)


def may_round(kernel: Kernel) -> bool:
    """Whether a kernel may round the values that it multiplies to bfloat16."""
    return "r" in kernel.entry.split("_")


def reaches(kernel: Kernel, family: Family, sizes: Mapping[str, int]) -> Mapping[str, int]:
    """For each part, by its `row` parameter, the values from a row's first to its last."""
    names = {param.name for param in kernel.params}
    found = {}
    for tensor in operands(kernel, family):
        row, unit, width = (f"{tensor.plain}_{name}" for name in ("row", "unit", "width"))
        if {row, width} <= names:
            last = formula.size(tensor.dense, sizes) - 1
            found[row] = last // sizes[width] * sizes[unit] + last % sizes[width] + 1
    return found


def _is_table(param: Param) -> bool:
    return isinstance(param.type, StateParam) and param.name in TABLES


def _format(kernel: Kernel) -> Format | None:
    name = kernel.defines.get("BS_FORMAT", "").removeprefix("BS_").lower()
    return FORMATS.get(name)  # type: ignore[call-overload,no-any-return]


def _operand(param: Param, family: Family, fmt: Format | None, names: set[str]) -> Operand:
    direction = "in" if isinstance(param.type, BytesParam) else param.type.direction  # type: ignore[union-attr]
    dtype = param.type.dtype if isinstance(param.type, BufferParam) else "f32"
    plain, piece = _plain(param.name, family)
    shape = _shape(plain, family, names)
    found = Operand(
        name=param.name,
        plain=plain,
        dtype=_ELEMENTS[dtype],
        shape=shape,
        dense=shape[-1],
        read=direction != "out" or param.name in family.over,
        written=direction != "in",
        piece=piece,
    )
    if f"{plain}_row" in names:
        found = replace(found, shape=(shape[0], f"{plain}_row"), dense=shape[-1])
    if fmt is not None and fmt.quantized and param.name in _WEIGHTS:
        rows, width = found.shape
        packed = f"{_grouped(width)}//{fmt.block}*{fmt.block_bytes}"
        return replace(found, shape=(rows, packed), format=fmt.name)
    if piece in ("s", "z"):
        return replace(found, shape=(found.shape[0], f"{_grouped(found.shape[-1])}//{_BLOCK}"))
    return found


def _grouped(text: str) -> str:
    return text if text.isidentifier() else f"({text})"


def _plain(name: str, family: Family) -> tuple[str, str]:
    """What the mathematics calls the values of a parameter, and which piece of them it is."""
    if name in family.shapes or name in ("table", "slot"):
        return name, ""
    stem, piece = name[:-1], name[-1]
    if f"{stem}x" in family.shapes and stem not in family.shapes:
        return f"{stem}x", piece
    if stem not in family.shapes:
        raise KeyError(name)
    return stem, piece


def _shape(plain: str, family: Family, names: set[str]) -> tuple[str, ...]:
    if plain == "table" and "table" not in family.shapes:
        width = "pitch" if "pitch" in names else _last_width(family)
        return ("slots", width)
    if plain == "slot" and "slot" not in family.shapes:
        return ("rows",)
    return tuple(family.shapes[plain].split())


def _last_width(family: Family) -> str:
    return family.shapes[family.results.split()[-1]].split()[-1]
