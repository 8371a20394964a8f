"""Hypothesis strategies for typed manifests, made from the grammar: any value its shapes admit."""

from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import strategies as st

from bedstone.spec.grammar import DEFINITIONS, MANIFEST
from bedstone.spec.param import parse_param
from bedstone.spec.shape import (
    Boolean,
    ByField,
    ByTag,
    ByValue,
    Choice,
    Either,
    Integer,
    List,
    Number,
    Param,
    Positional,
    Record,
    Ref,
    Row,
    Shape,
    Table,
    Text,
    Wrap,
)

MOST = 2
"""Items of an open array or table: a manifest has many of them inside one another."""

PARAMS = ["i32", "f32", "bytes<1>", "bytes<4294967295>", "in buffer<bf16>", "inout state"]


def manifests() -> st.SearchStrategy[Any]:
    """Typed manifests that parse, most of which break rules of verification."""
    return strategy(MANIFEST)


def strategy(shape: Shape) -> st.SearchStrategy[Any]:
    """Typed values of `shape`."""
    return _MAKE[type(shape)](shape)


def _floats(shape: Number) -> st.SearchStrategy[float]:
    return st.floats(allow_nan=False, allow_infinity=False, width=32 if shape.single else 64)


def _list(shape: List) -> st.SearchStrategy[tuple[Any, ...]]:
    least, most = (0, MOST) if shape.length is None else (shape.length, shape.length)
    return st.lists(strategy(shape.item), min_size=least, max_size=most).map(tuple)


def _positional(shape: Positional) -> st.SearchStrategy[Any]:
    values = st.tuples(*map(strategy, shape.items))
    return values if shape.kind is tuple else values.map(lambda items: shape.kind(*items))


def _record(shape: Record) -> st.SearchStrategy[Any]:
    rows = (*shape.rows, shape.flat) if shape.flat else shape.rows
    return st.builds(shape.kind, **{row.attribute: _member(row) for row in rows})


def _member(row: Row) -> st.SearchStrategy[Any]:
    values = strategy(row.shape)
    return values if row.required else st.just(row.default) | values


@cache
def _named(name: str) -> st.SearchStrategy[Any]:
    return st.deferred(lambda: strategy(DEFINITIONS[name]))


_MAKE: dict[type, Callable[[Any], st.SearchStrategy[Any]]] = {
    Integer: lambda shape: st.integers(shape.low, shape.high),
    Number: _floats,
    Text: lambda _: st.text(max_size=4),
    Boolean: lambda _: st.booleans(),
    Choice: lambda shape: st.sampled_from(shape.words),
    Param: lambda _: st.sampled_from([parse_param(text) for text in PARAMS]),
    List: _list,
    Positional: _positional,
    Table: lambda shape: st.dictionaries(st.text(max_size=4), strategy(shape.item), max_size=MOST),
    Record: _record,
    Wrap: lambda shape: strategy(shape.shape),
    ByTag: lambda shape: st.one_of(*map(strategy, shape.arms.values())),
    ByValue: lambda shape: st.one_of(*map(strategy, shape.arms.values())),
    ByField: lambda shape: strategy(shape.marked) | strategy(shape.plain),
    Either: lambda shape: st.one_of(*map(strategy, shape.shapes)),
    Ref: lambda shape: _named(shape.name),
}
