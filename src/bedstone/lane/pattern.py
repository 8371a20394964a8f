"""What a rule looks for: a tree of ops that feed one another, or siblings of one key."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from bedstone.graph.refs import writes
from bedstone.graph.step import Fixed, Linear, Row, Set
from bedstone.lane.body import Body
from bedstone.lane.classes import Into, LaneOp, attention_of, plain

Where = Callable[[Any, Body], bool]
Key = Callable[[Any, Body], Hashable]
Roles = Mapping[str, int]

T = TypeVar("T")


class Pattern(Protocol):
    """A shape that the ops above a node may have."""

    def match(self, key: int, body: Body) -> Roles | None:
        """The node in each role, the one at `key` among them; None where the shape does not fit."""
        ...


@dataclass(frozen=True, slots=True)
class Tree:
    """An op of one of `classes`, and what makes the operands it reads through `inputs`.

    `where` is part of the shape: an op for which it fails is another kind of op, no near miss. An
    op that `commutes` is tried with its operands `a` and `b` either way round. A role found twice
    must be one node.
    """

    role: str
    classes: tuple[type, ...]
    inputs: Mapping[str, Pattern] = field(default_factory=dict[str, Pattern])
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
            if roles is None or any(found.get(role, at) != at for role, at in roles.items()):
                return None
            found |= roles
        return found


@dataclass(frozen=True, slots=True)
class Either:
    """The first of several shapes that fits."""

    patterns: tuple[Pattern, ...]

    def match(self, key: int, body: Body) -> Roles | None:
        """The nodes of the shape that fits."""
        found = (pattern.match(key, body) for pattern in self.patterns)
        return next((roles for roles in found if roles is not None), None)


@dataclass(frozen=True, slots=True)
class AttendedRows:
    """A scratch table whose every row is the attention of one sequence, set in turn."""

    def match(self, key: int, body: Body) -> Roles | None:
        """The sets and the attentions, `set.0` and `row.0` those of the first row."""
        found: dict[str, int] = {}
        at: int | None = key
        while at is not None:
            node = body.nodes[at].op
            roles = _attended_row(at, node, body)
            if roles is None or found.keys() & roles.keys():
                return None
            found |= roles
            at = body.maker(node.table) if isinstance(node, Into | Set) else None
        rows = body.facts.rows(writes(body.nodes[key].op)[0])
        wanted = {f"row.{i}" for i in range(rows)}
        return found if wanted <= found.keys() else None


def _attended_row(key: int, op: LaneOp, body: Body) -> dict[str, int] | None:
    """The attention that makes one row of a scratch table, and the set that puts it there."""
    if not isinstance(op, Into | Set) or not isinstance(op.at, Fixed):
        return None
    if not body.facts.scratch(op.table):
        return None
    if isinstance(op, Into):
        maker = key if attention_of(op) is not None else None
        return None if maker is None else {f"row.{op.at.row}": key}
    maker = body.maker(op.x)
    if maker is None or attention_of(plain(body.nodes[maker].op)) is None:
        return None
    return {f"set.{op.at.row}": key, f"row.{op.at.row}": maker}


@dataclass(frozen=True, slots=True)
class RowsSet:
    """A batch's product whose every row is set into a table of its own."""

    def match(self, key: int, body: Body) -> Roles | None:
        """The product, its rows and their sets, found from the last row's set."""
        linear = self._product(key, body)
        if linear is None:
            return None
        made = writes(body.nodes[linear].op)[0]
        found = {"linear": linear}
        for row in set(body.readers(made)):
            op = body.nodes[row].op
            sets = body.readers(op.out) if isinstance(op, Row) else []
            if not isinstance(op, Row) or not isinstance(op.at, Fixed) or len(sets) != 1:
                return None
            found |= {f"row.{op.at.row}": row, f"set.{op.at.row}": sets[0]}
        wanted = {f"{role}.{i}" for role in ("row", "set") for i in range(body.facts.rows(made))}
        whole = wanted <= found.keys() and all(
            self._sets(body.nodes[at].op, body) for role, at in found.items() if "set" in role
        )
        return found if whole else None

    def _product(self, key: int, body: Body) -> int | None:
        """The product whose last row a node sets into a table."""
        op = body.nodes[key].op
        row = body.maker(op.x) if isinstance(op, Set) else None
        taken = None if row is None else body.nodes[row].op
        if not isinstance(taken, Row) or taken.at != Fixed(body.facts.rows(taken.x) - 1):
            return None
        maker = body.maker(taken.x)
        return maker if maker is not None and isinstance(body.nodes[maker].op, Linear) else None

    def _sets(self, op: LaneOp, body: Body) -> bool:
        return isinstance(op, Set) and op.column is None and body.facts.cached(op.table)


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

    `made` are the results that outlive the join; the others are elided. Between the members of a
    `tree` a join dissolves the edges; siblings must have none.
    """

    body: Body
    roles: Roles
    tree: bool
    made: frozenset[str] = frozenset()

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

    def sources(self, *roles: str) -> tuple[int, ...]:
        """The graph ops that stand in some roles, those there are."""
        keys = {self.roles[role] for role in roles if role in self.roles}
        return tuple(sorted(i for key in keys for i in self.body.nodes[key].sources))

    def elided(self) -> list[str]:
        """The tensors that would no longer be made."""
        made = [name for key in self.members for name in writes(self.body.nodes[key].op)]
        return sorted(name for name in made if name not in self.made)
