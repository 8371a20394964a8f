"""A StepGraph as text, one declaration or op a line (`graph.parse` reads it back).

    graph(model=tiny, form=decode, rows=1, params=(pos,), outputs=(logits, next))
    token = carried(rows=1)
    embed.weight = const(format=f32, shape=(8, 4))
    x.0 = embed(ids=token, table=embed.weight)

The word before `=` is the `name` a declaration has or the `out` an op makes; the rest are fields by
name, those at their default left out. Numbers are written so that they read back exactly. Ops of
other packages can be written too.
"""

import json
import re
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Any, ClassVar, Protocol, cast

from bedstone.graph.step import Carried, Const, FormName, RopeTable, StepGraph, Table

WORD = re.compile(r"[A-Za-z_][\w.@+-]*")
KEYWORDS: dict[str, object] = {
    "none": None,
    "true": True,
    "false": False,
    "inf": float("inf"),
    "nan": float("nan"),
}
DECLARED: dict[type, str] = {
    Const: "consts",
    Table: "tables",
    Carried: "carried",
    RopeTable: "ropes",
}


@dataclass(frozen=True, slots=True)
class Graph:
    """The first line of the text: what a StepGraph is apart from what it declares and does."""

    model: str
    form: FormName
    rows: int
    row_param: str | None = None
    params: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


def emit(graph: StepGraph) -> str:
    """`graph` as text, without its `values`, which follow from the rest."""
    head = Graph(graph.model, graph.form, graph.rows, graph.row_param, graph.params, graph.outputs)
    declared = [entry for field in DECLARED.values() for entry in getattr(graph, field).values()]
    return "".join(f"{emit_op(entry)}\n" for entry in (head, *declared, *graph.ops))


def emit_op(op: _Dataclass) -> str:
    """One op or declaration as one line, without the line's end."""
    lead = lead_field(type(op))
    return _call(op) if lead is None else f"{_value(getattr(op, lead))} = {_call(op, lead)}"


def lead_field(cls: type[_Dataclass]) -> str | None:
    """The field that stands before `=`: what an op makes, or what a declaration is called."""
    names = {f.name for f in fields(cls)}
    return next((name for name in ("out", "name") if name in names), None)


def class_word(cls: type) -> str:
    """The word a class goes by in the text."""
    return cls.__name__.lower()


def _call(value: _Dataclass, lead: str | None = None) -> str:
    shown = [
        f"{f.name}={_value(getattr(value, f.name))}"
        for f in fields(value)
        if f.name != lead and (f.default is MISSING or f.default != getattr(value, f.name))
    ]
    return f"{class_word(type(value))}({', '.join(shown)})"


def _value(value: object) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value if WORD.fullmatch(value) and value not in KEYWORDS else json.dumps(value)
    if isinstance(value, tuple):
        members = [_value(member) for member in cast("tuple[object, ...]", value)]
        return f"({', '.join(members)}{',' if len(members) == 1 else ''})"
    if is_dataclass(value):
        return _call(cast("_Dataclass", value))
    return repr(value)
