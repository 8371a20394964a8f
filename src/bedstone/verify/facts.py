"""What the rules of every topic look up, computed once from the manifest."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from bedstone.spec.manifest import Buffer, Manifest, Module, Op, Program, State, Var
from bedstone.verify.rule import Place, escape

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class Facts:
    """The manifest with its corners: `upper` has every var at its max, `lower` at 1."""

    manifest: Manifest
    upper: Mapping[str, int]
    lower: Mapping[str, int]

    @staticmethod
    def of(manifest: Manifest) -> "Facts":
        """The facts of a manifest, sound or not."""
        upper = {name: var.max for name, var in manifest.vars.items()}
        return Facts(manifest, upper, dict.fromkeys(manifest.vars, 1))


@dataclass(frozen=True, slots=True)
class Named(Generic[ValueT]):
    """A named entry of one of the manifest's sections."""

    facts: Facts
    kind: str
    name: str
    value: ValueT

    @property
    def place(self) -> Place:
        """The entry's own place."""
        pointer = f"/{self.kind}s/{escape(self.name)}"
        return Place(f"{self.kind} `{self.name}`", pointer, (f"{self.kind} {self.name}",))


def _named(facts: Facts, kind: str, section: Mapping[str, ValueT]) -> Iterator[Named[ValueT]]:
    for name in sorted(section):
        yield Named(facts, kind, name, section[name])


def each_var(facts: Facts) -> Iterator[Named[Var]]:
    """Vars by name."""
    return _named(facts, "var", facts.manifest.vars)


def each_state(facts: Facts) -> Iterator[Named[State]]:
    """States by name."""
    return _named(facts, "state", facts.manifest.states)


def each_buffer(facts: Facts) -> Iterator[Named[Buffer]]:
    """Buffers by name."""
    return _named(facts, "buffer", facts.manifest.buffers)


def each_module(facts: Facts) -> Iterator[Named[Module]]:
    """Modules by name."""
    return _named(facts, "module", facts.manifest.modules)


def each_op(facts: Facts) -> Iterator[Named[Op]]:
    """Ops by name."""
    return _named(facts, "op", facts.manifest.ops)


def each_program(facts: Facts) -> Iterator[Named[Program]]:
    """Programs by name."""
    return _named(facts, "program", facts.manifest.programs)
