"""A slow reader of programs: what each launch is given, found by walking the manifest again."""

import ctypes
import struct
from dataclasses import dataclass

from bedstone.spec.manifest import (
    F32,
    Add,
    BufArg,
    BufferParam,
    BytesParam,
    CeilDiv,
    Clamp,
    ExprArg,
    KernelLaunch,
    Mul,
    Pack,
    ParamArg,
    Rank,
    ScratchArg,
    StateArg,
    StateParam,
    TensorMap,
    VarArg,
)

WIDTHS = {"i32": 4, "f32": 4, "i64": 8, "u8": 1}


@dataclass
class Given:
    """One launch that runs: its grid, its shared bytes and the bytes of each argument."""

    module: str | None
    entry: str
    grid: tuple[int, int, int]
    shared: int
    args: tuple[bytes, ...]


def value(expr, env) -> int:
    match expr:
        case int():
            return expr
        case str():
            return env[expr]
        case CeilDiv(inner, by):
            return (value(inner, env) + by - 1) // by
        case Mul(inner, by):
            return value(inner, env) * by
        case Add(left, right):
            return value(left, env) + value(right, env)
        case Clamp(inner, start, length):
            return min(max(value(inner, env) - start, 0), length)


@dataclass
class Walk:
    """A manifest under vars, with addresses made up by `address(kind, name, part)`."""

    manifest: object
    env: dict
    ranks: dict
    address: object

    def launches(self, program: str) -> list[Given]:
        return [
            self.launch(call, launch)
            for call in self.manifest.programs[program].calls
            for launch in self.manifest.ops[call.op].impl.launches
            if self.runs(launch.when)
        ]

    def runs(self, when) -> bool:
        if when is None:
            return True
        low = 0 if when.min is None else when.min
        return low <= self.env[when.var] <= (2**64 if when.max is None else when.max)

    def launch(self, call, launch) -> Given:
        op = self.manifest.ops[call.op]
        params = op.params if launch.params is None else launch.params
        args = launch.args
        if args is None:
            args = [ParamArg(i) for i in range(len(op.params))]
        kernel = isinstance(launch, KernelLaunch)
        return Given(
            launch.module if kernel else None,
            launch.entry,
            tuple(value(e, self.env) for e in launch.grid) if kernel else (1, 1, 1),
            value(launch.shared_mem or 0, self.env) if kernel else 0,
            tuple(self.given(call, a)[: size(p)] for p, a in zip(params, args, strict=True)),
        )

    def given(self, call, arg) -> bytes:
        if isinstance(arg, Pack):
            return self.pack(call, arg)
        if isinstance(arg, TensorMap):
            return self.given(call, ParamArg(arg.param)) * 16
        if isinstance(arg, ParamArg):
            return self.given(call, call.args[arg.param])
        if isinstance(arg, F32):
            return struct.pack("<f", arg.value) + bytes(4)
        return word(self.number(call, arg))

    def pack(self, call, arg) -> bytes:
        image = bytearray(arg.size)
        for field in arg.fields:
            data = self.given(call, field.source)
            width = field.width or self.natural(call, field.source)
            image[field.at : field.at + width] = data[:width].ljust(width, b"\0")
        return bytes(image)

    def number(self, call, arg) -> int:
        numbers = {
            BufArg: lambda: self.address("buffer", arg.buf, "") + arg.offset,
            StateArg: lambda: self.address("state", arg.state, "") + arg.offset,
            ScratchArg: lambda: self.address("scratch", call.op, arg.scratch),
            VarArg: lambda: self.env[arg.var],
            ExprArg: lambda: value(arg.expr, self.env),
            Rank: lambda: self.ranks[arg.group],
        }
        return numbers.get(type(arg), lambda: arg.value)()

    def natural(self, call, source) -> int:
        if isinstance(source, ParamArg):
            return size(self.manifest.ops[call.op].params[source.param])
        return {"ScratchArg": 8, "I64": 8, "U8": 1, "TensorMap": 128}.get(type(source).__name__, 4)


def size(param) -> int:
    match param:
        case BytesParam(nbytes):
            return nbytes
        case BufferParam() | StateParam():
            return 8
        case _:
            return WIDTHS[param.type]


def word(number: int) -> bytes:
    return (number % 2**64).to_bytes(8, "little")


def read_capture(capture, kernels, skip_inactive=True) -> list[Given]:
    """The launches of a capture as a device finds them; `kernels` by handle."""
    found = []
    for row in capture.words[: capture.count * 7].reshape(-1, 7).tolist():
        entry, args, x, y, z, shared, active = row
        if not active and skip_inactive:
            continue
        kernel = kernels[entry]
        given = []
        for index, param in enumerate(kernel.params):
            at = args + 8 * index
            if isinstance(param, BytesParam):
                at = int.from_bytes(ctypes.string_at(at, 8), "little")
                assert at % 64 == 0
            given.append(ctypes.string_at(at, size(param)))
        found.append(Given(kernel.module, kernel.entry, (x, y, z), shared, tuple(given)))
    return found
