"""What a rule looks for: a tree of ops that feed one another, or siblings of one key."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bedstone.graph.refs import writes
from bedstone.lane.body import Body
from bedstone.lane.classes import LaneOp

Where = Callable[[Any, Body], bool]
Key = Callable[[Any, Body], Hashable]
Roles = Mapping[str, int]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tree:
    """An op of one of `classes`, and what makes the operands it reads through `inputs`.

    `where` is part of the shape: an op for which it fails is another kind of op, no near miss. An
    op that `commutes` is tried with its operands `a` and `b` either way round.
    """

    role: str
    classes: tuple[type, ...]
    inputs: Mapping[str, "Tree"] = field(default_factory=dict[str, "Tree"])
    where: Where | None = None
    commutes: bool = False

    def match(self, key: int, body: Body) -> Roles | None:
        """The node in each role, this one's at `key`; None where the tree does not fit."""
        op = body.nodes[key].op
        if not isinstance(op, self.classes) or not (self.where is None or self.where(op, body)):
            return None
        for fields in self._orders():
            found = self._operands(op, fields, body)
            if found is not None:
                return found | {self.role: key}
        return None

    def _orders(self) -> Iterator[dict[str, str]]:
        """Which field of the op each input is read through."""
        straight = {name: name for name in self.inputs}
        yield straight
        if self.commutes:
            yield {name: {"a": "b", "b": "a"}[name] for name in straight}

    def _operands(self, op: LaneOp, fields: Mapping[str, str], body: Body) -> dict[str, int] | None:
        found: dict[str, int] = {}
        for name, tree in self.inputs.items():
            maker = body.maker(getattr(op, fields[name]))
            roles = None if maker is None else tree.match(maker, body)
            if roles is None:
                return None
            found |= roles
        return found


@dataclass(frozen=True, slots=True)
class Siblings:
    """Ops of one of `classes` that have the same `key`; None is no key."""

    classes: tuple[type, ...]
    key: Key

    def groups(self, body: Body) -> list[list[int]]:
        """The nodes of each key that two or more share, in the order of the body."""
        found: dict[Hashable, list[int]] = {}
        for node in body.order():
            op = body.nodes[node].op
            key = self.key(op, body) if isinstance(op, self.classes) else None
            if key is not None:
                found.setdefault(key, []).append(node)
        return [group for group in found.values() if len(group) > 1]


@dataclass(frozen=True, slots=True)
class Match:
    """A pattern found in a body: the node in each role, the last made one's role last.

    `kept` names the roles whose result outlives the join; the others' are elided. Between the
    members of a `tree` a join dissolves the edges; siblings must have none.
    """

    body: Body
    roles: Roles
    kept: frozenset[str]
    tree: bool

    @property
    def members(self) -> frozenset[int]:
        """The nodes to be joined."""
        return frozenset(self.roles.values())

    @property
    def ops(self) -> list[LaneOp]:
        """The ops to be joined."""
        return [self.body.nodes[key].op for key in self.roles.values()]

    @property
    def anchor(self) -> int:
        """The graph op a miss is recorded at: the last of the last member."""
        return max(self.members)

    def op(self, role: str, cls: type[T]) -> T:
        """The op in a role, of the class the pattern asks for there."""
        op = self.body.nodes[self.roles[role]].op
        if not isinstance(op, cls):
            raise TypeError(f"`{role}` is a {type(op).__name__}")
        return op

    def elided(self) -> list[str]:
        """The tensors that would no longer be made."""
        gone = [key for role, key in self.roles.items() if role not in self.kept]
        return [name for key in gone for name in writes(self.body.nodes[key].op)]
