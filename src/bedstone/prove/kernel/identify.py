"""Which kernel of the library an op launches, and what its parameters are called. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bedstone.errors import DefinitionError
from bedstone.library.kernel import MAPS, Kernel, KernelSet, Param
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

    Raises `DefinitionError`: the op's launches are none of such a kernel, or no call uses it.
    """
    op = manifest.ops[name]
    launches = [each for each in op.impl.launches if isinstance(each, KernelLaunch)]
    if len(launches) != len(op.impl.launches):
        raise DefinitionError(f"op `{name}` launches what is no kernel: nobody says what it is")
    found = next(_matching(op, launches, sets), None)
    if found is None:
        told = ", ".join(f"`{each.entry}` of module `{each.module}`" for each in launches)
        raise DefinitionError(
            f"op `{name}`: the library has no kernel {told} with its parameters, so nobody says "
            f"what it computes"
        )
    entry, kernel = found
    call = next(_calls(manifest, name), None)
    if call is None:
        raise DefinitionError(f"op `{name}` is called by no program")
    return _bound(name, op, kernel, entry, call)


def _matching(
    op: Op, launches: Sequence[KernelLaunch], sets: Iterable[KernelSet]
) -> Iterator[tuple[str, Kernel]]:
    wanted = [(each.module, each.entry, launch_params(op, each)) for each in launches]
    for held in sets:
        for entry, kernel in held.named:
            if any(kernel.module == module for module, _, _ in wanted) and wanted == [
                (kernel.module, stage.entry, tuple(param.type for param in stage.params))
                for stage in kernel.launches
            ]:
                yield entry, kernel


def _calls(manifest: Manifest, name: str) -> Iterator[Call]:
    return (c for program in manifest.programs.values() for c in program.calls if c.op == name)


def _bound(name: str, op: Op, kernel: Kernel, entry: str, call: Call) -> Known:
    memory: dict[str, int] = {}
    numbers: dict[str, Expr | float] = {}
    tables: dict[str, tuple[float, ...]] = {}
    for param, arg in _arguments(op, kernel):
        if param.name == MAPS:
            continue
        if isinstance(param.type, BytesParam):
            tables[param.name] = _floats(arg)
        elif isinstance(param.type, ScalarParam):
            numbers[param.name] = _number(name, arg, call)
        elif isinstance(arg, ParamArg):
            memory[param.name] = arg.param
    return Known(name, op, kernel, entry, memory, numbers, tables)


def _arguments(op: Op, kernel: Kernel) -> Iterator[tuple[Param, LaunchArg]]:
    for launch, stage in zip(op.impl.launches, kernel.launches, strict=True):
        yield from zip(stage.params, launch_args(op, launch), strict=True)


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
