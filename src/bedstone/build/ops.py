"""Manifest ops made from kernels: one op for each kernel at each set of literal sizes.

An op's interface holds what differs from call to call (buffers, states, a row count that is a var);
sizes are literals of its launch, since a grid may name vars but not parameters.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from bedstone.build.operand import (
    Count,
    Elements,
    Frequencies,
    Int,
    Operand,
    Operands,
    Real,
    Size,
)
from bedstone.errors import CallerError
from bedstone.lane.launch import Rows, Upto
from bedstone.library.kernel import (
    BOX_VALUES,
    MAPS,
    Boxes,
    Dim,
    Extent,
    Kernel,
    Param,
    Shared,
    Stage,
)
from bedstone.spec.manifest import (
    F32,
    I32,
    Add,
    Arg,
    BufferParam,
    BytesParam,
    Call,
    CeilDiv,
    Expr,
    ExprArg,
    Impl,
    KernelLaunch,
    LaunchArg,
    Mul,
    Op,
    Pack,
    PackField,
    ParamArg,
    ParamType,
    ScalarParam,
    Scratch,
    ScratchArg,
    StateParam,
    TensorMap,
    VarArg,
)
from bedstone.spec.number import round_f32

Place = Callable[[Operand], Arg]
"""Where a buffer or state operand lies."""


_UNASKED = 48 * 1024
"""Bytes that a block may share unasked, a kernel's own among them.

A reader asks for more where what is shared beside those is more. A little less is made more, since
together they may be.
"""

_MOST_OWN = 4 * 1024


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the numbers of a program are: its full row count and the var that lowers it, if any.

    `length_var` counts the cached positions of the step's sequence; without it they are the most.
    """

    rows: int
    rows_var: str | None
    page: int
    pages_width: int
    length_var: str | None
    edits: int = 0

    @property
    def largest(self) -> "Sizes":
        """The numbers at their most, whatever the vars say."""
        return replace(self, rows_var=None, length_var=None)

    def number(self, operand: Operand) -> Expr | float:
        """The value of a scalar operand: a literal, or an expression of the rows var."""
        match operand:
            case Int(value) | Real(value):
                return value
            case Size("step_rows"):
                return self._count(self.rows)
            case Size(of):
                return {"page": self.page, "pages_width": self.pages_width, "edits": self.edits}[of]
            case Count(rows):
                return self._count(rows)
            case Elements(rows, width):
                count = self._count(rows)
                return count * width if isinstance(count, int) else Mul(count, width)
            case _:
                raise CallerError(f"operand `{operand}` is memory, expected a number")

    def _count(self, rows: Rows) -> int | str:
        if isinstance(rows, Upto):
            return self.length_var or rows.most
        return rows if self.rows_var is None or rows != self.rows else self.rows_var


@dataclass(slots=True)
class OpTable:
    """The ops of a manifest so far, and the modules their launches need."""

    ops: dict[str, Op] = field(default_factory=dict)
    modules: dict[str, Kernel] = field(default_factory=dict)

    def call(self, kernel: Kernel, operands: Operands, sizes: Sizes, place: Place) -> Call:
        """Bind `operands` to `kernel`, adding its op where no equal one stands yet.

        Raises `CallerError`: the kernel has a parameter that `operands` does not give.
        """
        numbers = numbers_of(kernel, operands, sizes)
        interface = _Interface(kernel, operands, sizes, place)
        launches = tuple(interface.launch(stage, numbers) for stage in kernel.launches)
        op = Op(tuple(interface.params), Impl(launches, _scratch(kernel, operands, sizes)))
        self.modules.setdefault(kernel.module, kernel)
        return Call(self._name(kernel.entry, numbers, op), tuple(interface.args))

    def _name(self, entry: str, numbers: dict[str, Expr], op: Op) -> str:
        """`entry(rows=1,k=576,n=1536)`, told apart by a number where other literals differ."""
        sizes = ",".join(f"{k}={v}" for k, v in numbers.items() if _is_size(k, v))
        base = f"{entry}({sizes})" if sizes else entry
        name, again = base, 1
        while self.ops.setdefault(name, op) != op:
            again += 1
            name = f"{base}#{again}"
        return name


@dataclass(slots=True)
class _Interface:
    """The parameters of an op, and the arguments of a call, as its launches ask for them."""

    kernel: Kernel
    operands: Operands
    sizes: Sizes
    place: Place
    params: list[ParamType] = field(default_factory=list)
    args: list[Arg] = field(default_factory=list)
    at: dict[str, int] = field(default_factory=dict)

    def launch(self, stage: Stage, numbers: dict[str, Expr]) -> KernelLaunch:
        """A launch of the op."""
        kernel = self.kernel
        return KernelLaunch(
            module=kernel.module,
            entry=stage.entry,
            block=kernel.block,
            grid=_grid(stage.grid, numbers),
            params=tuple(param.type for param in stage.params),
            shared_mem=None if stage.shared is None else _shared(stage.shared, numbers),
            cluster=kernel.cluster,
            pdl=kernel.pdl,
            args=tuple(self._argument(param, numbers) for param in stage.params),
        )

    def _argument(self, param: Param, numbers: dict[str, Expr]) -> LaunchArg:
        if param.name == MAPS:
            return _maps(self.kernel, self.at, numbers)
        if param.name in self.kernel.parts:
            return ScratchArg(param.name)
        if param.name not in self.at:
            given = _given(self.kernel, param, self.operands)
            bound = _bind(given, param.type, self.sizes, self.place)
            if isinstance(bound, I32 | F32 | Pack):
                return bound
            self.at[param.name] = len(self.params)
            self.params.append(param.type)
            self.args.append(bound)
        return ParamArg(self.at[param.name])


def _scratch(kernel: Kernel, operands: Operands, sizes: Sizes) -> dict[str, Scratch]:
    """Memory of the call's own, with every number at its most."""
    if not kernel.parts:
        return {}
    most = numbers_of(kernel, operands, sizes.largest)
    return {
        name: Scratch("f32", tuple(_dim(dim, most) for dim in dims))
        for name, dims in kernel.parts.items()
    }


def _dim(dim: Dim, most: Mapping[str, Expr]) -> int:
    product = 1
    for name in dim.params:
        size = most[name]
        if not isinstance(size, int):
            raise CallerError(f"`{name}` is `{size}` at its most, expected a number")
        product *= size
    return -(-product // dim.per) + dim.more


_NUMBERS = Int | Size | Count | Elements

_SIZE_NAMES = frozenset(
    {"rows", "width", "k", "n", "n0", "n1", "n2", "n3", "heads", "groups", "count"}
)


def _is_size(name: str, value: Expr) -> bool:
    return name in _SIZE_NAMES and isinstance(value, int | str)


def _given(kernel: Kernel, param: Param, operands: Operands) -> Operand:
    operand = operands.get(param.name)
    if operand is None:
        raise CallerError(
            f"kernel `{kernel.entry}` takes `{param.name}`, the launch gives {sorted(operands)}"
        )
    return operand


def _bind(operand: Operand, kind: ParamType, sizes: Sizes, place: Place) -> I32 | F32 | Pack | Arg:
    """A literal of the launch, or the argument that each call gives."""
    if isinstance(kind, BufferParam | StateParam):
        return place(operand)
    if isinstance(operand, Frequencies) and isinstance(kind, BytesParam):
        return _floats(operand.inv_freq, kind.size)
    match sizes.number(operand):
        case float(value):
            return F32(round_f32(value))
        case int(value):
            return I32(value)
        case str(value):
            return VarArg(value)
        case expr:
            return ExprArg(expr)


def _maps(kernel: Kernel, at: Mapping[str, int], numbers: Mapping[str, Expr]) -> Pack:
    """Tensor maps of the matrices that a kernel reads by boxes, each over an interface parameter.

    Where rows are a var, or a table's, a map spans all that there is.
    """
    fields = []
    for index, boxes in enumerate(kernel.boxes):
        width = _width(kernel, boxes, numbers)
        rows = numbers[boxes.rows] if boxes.rows else 0
        tensor = TensorMap(
            at[boxes.param],
            "bf16",
            dims=(width, rows if isinstance(rows, int) else 0),
            box=(BOX_VALUES, boxes.height),
            strides=(2 * width,),
            swizzle=128,
            l2_promotion=256,
        )
        fields.append(PackField(128 * index, tensor))
    return Pack(128 * len(fields), tuple(fields))


def _width(kernel: Kernel, boxes: Boxes, numbers: Mapping[str, Expr]) -> int:
    """How many values a row has."""
    width = 1
    for name in boxes.width:
        value = numbers[name]
        if not isinstance(value, int):
            raise CallerError(
                f"kernel `{kernel.entry}` reads rows of `{value}` values, expected a number"
            )
        width *= value
    return width


def _floats(values: tuple[float, ...], size: int) -> Pack:
    """An array of f32 passed by value, zeros behind them up to `size` bytes."""
    if 4 * len(values) > size:
        raise CallerError(f"{len(values)} frequencies do not fit the {size} bytes of a rope table")
    fields = tuple(PackField(4 * i, F32(round_f32(value))) for i, value in enumerate(values))
    return Pack(size, fields)


def numbers_of(kernel: Kernel, operands: Operands, sizes: Sizes) -> dict[str, Expr]:
    """The integer parameters, by name: what grids, scratch and an op's name are made from."""
    values = {
        param.name: sizes.number(_given(kernel, param, operands))
        for param in kernel.params
        if isinstance(param.type, ScalarParam)
    }
    return {name: value for name, value in values.items() if not isinstance(value, float)}


def known_numbers(operands: Operands, sizes: Sizes) -> dict[str, int]:
    """The integers among some operands, by name, that no var decides."""
    given = {n: sizes.number(o) for n, o in operands.items() if isinstance(o, _NUMBERS)}
    return {name: number for name, number in given.items() if isinstance(number, int)}


def _grid(
    extents: tuple[Extent, Extent, Extent], numbers: dict[str, Expr]
) -> tuple[Expr, Expr, Expr]:
    x, y, z = (_extent(extent, numbers) for extent in extents)
    return x, y, z


def _extent(extent: Extent, numbers: dict[str, Expr]) -> Expr:
    if extent.param is None:
        return extent.times
    value = numbers[extent.param]
    if isinstance(value, int):
        return extent.times * -(-value // extent.per)
    tiles = value if extent.per == 1 else CeilDiv(value, extent.per)
    return tiles if extent.times == 1 else Mul(tiles, extent.times)


def _shared(shared: Shared, numbers: dict[str, Expr]) -> Expr:
    total: Expr = shared.bytes
    for name, per in shared.per:
        value = numbers[name]
        term: Expr = value * per if isinstance(value, int) else Mul(value, per)
        both_known = isinstance(total, int) and isinstance(term, int)
        total = total + term if both_known else Add(total, term)  # type: ignore[operator]
    near = isinstance(total, int) and _UNASKED - _MOST_OWN < total <= _UNASKED
    return _UNASKED + 16 if near else total
