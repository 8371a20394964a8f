"""Rows of the kernel catalog: groups of parameters that entries share, and how a row is written."""

from types import MappingProxyType

from bedstone.library.coding import Coding
from bedstone.library.kernel import Extent, Kernel, Param, Shared
from bedstone.spec.dtype import DType, Format
from bedstone.spec.manifest import BufferParam, Direction, ParamType, ScalarParam, StateParam

Params = tuple[Param, ...]

Row = tuple[str, str, Params, tuple[Extent, ...], Shared | None]
"""Entry, source, parameters, grid (missing extents are 1), scratch."""

TILE = 32
"""Outputs one block of a matrix product owns; also the values of one quantized block."""

SCRATCH = Shared(226 * 1024)
"""What a tile of weights or of keys is laid into: just under the manifest's limit a launch."""

EACH_ROW = (Extent("rows"),)

_ONE = Extent()


def buffers(direction: Direction, dtype: DType, *names: str) -> Params:
    """A buffer parameter for each name."""
    return tuple(Param(name, BufferParam(direction, dtype)) for name in names)


def inputs(names: str, dtype: DType = "f32") -> Params:
    """Buffers read, by their names in one string."""
    return buffers("in", dtype, *names.split())


def outputs(names: str, dtype: DType = "f32") -> Params:
    """Buffers written."""
    return buffers("out", dtype, *names.split())


def _scalars(kind: ParamType, names: str) -> Params:
    return tuple(Param(name, kind) for name in names.split())


def ints(names: str) -> Params:
    """Scalars i32."""
    return _scalars(ScalarParam("i32"), names)


def floats(names: str) -> Params:
    """Scalars f32."""
    return _scalars(ScalarParam("f32"), names)


def states(direction: Direction, names: str) -> Params:
    """States of the manifest."""
    return tuple(Param(name, StateParam(direction)) for name in names.split())


def numbered(stem: str, count: int) -> str:
    """`stem0 stem1 …`."""
    return " ".join(f"{stem}{i}" for i in range(count))


def window(*names: str) -> Params:
    """Where the values of each named input lie that is read unit by unit of a wider tensor."""
    return ints(" ".join(f"{name}_row {name}_unit {name}_width" for name in names))


TABLE: Params = (*states("inout", "table"), *inputs("slot", "i32"))
COLUMNS = ints("pitch column")


def coded(name: str, coding: Coding) -> Params:
    """A coded activation read: codes, and where they are scaled a scale and a sum a block."""
    codes = inputs(f"{name}q", coding.dtype)
    return codes + inputs(f"{name}s") + inputs(f"{name}z", "i32") if coding.scaled else codes


def coded_out(name: str, coding: Coding) -> Params:
    """The same written."""
    codes = outputs(f"{name}q", coding.dtype)
    return codes + outputs(f"{name}s") + outputs(f"{name}z", "i32") if coding.scaled else codes


def read_forms(fmt: Format, coding: Coding) -> tuple[tuple[str, Params], ...]:
    """How an activation `x` is read by a matrix: as it is, perhaps rounded, or as codes."""
    forms = [("", inputs("x"))]
    if fmt.name in coding.rounds:
        forms.append(("_r", inputs("x")))
    if fmt.name in coding.formats:
        forms.append(("_q", coded("x", coding)))
    return tuple(forms)


def write_forms(coding: Coding, name: str = "y") -> tuple[tuple[str, Params], ...]:
    """How an entry that can code what it makes writes it."""
    return (
        ("", outputs(name)),
        ("_q", coded_out(name, coding)),
        ("_fq", outputs(name) + coded_out(name, coding)),
    )


def kernel(row: Row, fmt: Format | None = None) -> Kernel:
    """The kernel of a row; one compiled for a weight format says so in its module's name."""
    entry, source, params, extents, shared = row
    x, y, z = (*extents, _ONE, _ONE, _ONE)[:3]
    module = source.removesuffix(".c").replace("_", "-")
    defines = {}
    if fmt is not None:
        module = f"{module}-{fmt.name}"
        defines = {"BS_FORMAT": f"BS_{fmt.name.upper()}"}
    return Kernel(entry, module, source, MappingProxyType(defines), params, (x, y, z), shared)
