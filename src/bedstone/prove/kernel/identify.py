"""Which kernel of the library an op launches, and what its parameters are called. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from bedstone.errors import DefinitionError
from bedstone.library.kernel import MAPS, Kernel, KernelSet
from bedstone.spec.expr import evaluate, reads
from bedstone.spec.manifest import (
    F32,
    I32,
    Arg,
    BytesParam,
    Call,
    Expr,
    ExprArg,
    KernelLaunch,
    LaunchArg,
    Manifest,
    Op,
    Pack,
    ParamArg,
    ScalarParam,
    VarArg,
)
from bedstone.verify.binding import launch_args, launch_params


@dataclass(frozen=True, slots=True)
class Known:
    """An op whose mathematics is known.

    `kernel` is the library's, `entry` what the library calls it. `memory` gives the interface
    parameter of each pointer by its name, `numbers` each scalar's value or the expression it is,
    `tables` the floats of what is passed by value.
    """

    name: str
    op: Op
    kernel: Kernel
    entry: str
    memory: Mapping[str, int]
    numbers: Mapping[str, Expr | float]
    tables: Mapping[str, tuple[float, ...]]

    @property
    def vars(self) -> tuple[str, ...]:
        """The vars that its numbers are made of, in order."""
        found = (reads(value) for value in self.numbers.values() if not isinstance(value, float))
        return tuple(sorted(frozenset[str]().union(*found)))

    def at(self, env: Mapping[str, int]) -> dict[str, int | float]:
        """The number of each scalar parameter under values of the vars."""
        return {
            name: value if isinstance(value, float) else evaluate(value, env)
            for name, value in self.numbers.items()
        }


def identify(manifest: Manifest, name: str, sets: Iterable[KernelSet]) -> Known:
    """The library's kernel behind an op.

    Raises `DefinitionError`: the op is no one launch of such a kernel, or no call uses it.
    """
    op = manifest.ops[name]
    if len(op.impl.launches) != 1 or not isinstance(op.impl.launches[0], KernelLaunch):
        raise DefinitionError(
            f"op `{name}` is no single launch of a kernel: nobody says what it is"
        )
    launch = op.impl.launches[0]
    found = next(_matching(op, launch, sets), None)
    if found is None:
        raise DefinitionError(
            f"op `{name}`: the library has no kernel `{launch.entry}` of module `{launch.module}` "
            f"with its parameters, so nobody says what it computes"
        )
    entry, kernel = found
    call = next(_calls(manifest, name), None)
    if call is None:
        raise DefinitionError(f"op `{name}` is called by no program")
    return _bound(name, op, launch, kernel, entry, call)


def _matching(
    op: Op, launch: KernelLaunch, sets: Iterable[KernelSet]
) -> Iterator[tuple[str, Kernel]]:
    params = launch_params(op, launch)
    for held in sets:
        for entry, kernel in held.kernels.items():
            alike = (kernel.entry, kernel.module) == (launch.entry, launch.module)
            if alike and tuple(param.type for param in kernel.params) == params:
                yield entry, kernel


def _calls(manifest: Manifest, name: str) -> Iterator[Call]:
    return (c for program in manifest.programs.values() for c in program.calls if c.op == name)


def _bound(
    name: str, op: Op, launch: KernelLaunch, kernel: Kernel, entry: str, call: Call
) -> Known:
    memory: dict[str, int] = {}
    numbers: dict[str, Expr | float] = {}
    tables: dict[str, tuple[float, ...]] = {}
    for param, arg in zip(kernel.params, launch_args(op, launch), strict=True):
        if param.name == MAPS:
            continue
        if isinstance(param.type, BytesParam):
            tables[param.name] = _floats(arg)
        elif isinstance(param.type, ScalarParam):
            numbers[param.name] = _number(name, arg, call)
        elif isinstance(arg, ParamArg):
            memory[param.name] = arg.param
    return Known(name, op, kernel, entry, memory, numbers, tables)


def _floats(arg: LaunchArg) -> tuple[float, ...]:
    fields = arg.fields if isinstance(arg, Pack) else ()
    return tuple(f.source.value for f in fields if isinstance(f.source, F32))


def _number(name: str, arg: LaunchArg, call: Call) -> Expr | float:
    given: LaunchArg | Arg = call.args[arg.param] if isinstance(arg, ParamArg) else arg
    match given:
        case I32(value) | F32(value):
            return value
        case VarArg(var):
            return var
        case ExprArg(expr):
            return expr
        case _:
            raise DefinitionError(f"op `{name}` is given a number that is told nowhere: `{given}`")
