"""Values of fields that never change, which `dataclasses` takes for its own."""

import pickle
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass, replace

import pytest
from msgspec import field

from bedstone.spec.frozen import Frozen


class Inner(Frozen):
    x: int


class Outer(Frozen):
    inner: Inner
    names: tuple[str, ...] = ()
    table: Mapping[str, Inner] = field(default_factory=dict)


class Wider(Outer):
    more: int = 0


class Place(Frozen, eq=False):
    x: int


VALUE = Outer(Inner(1), ("a",), {"b": Inner(2)})


def test_equal_fields_are_an_equal_value() -> None:
    assert Inner(1) == Inner(1) != Inner(2)
    assert len({Inner(1), Inner(1), Inner(2)}) == 2
    assert Place(1) != Place(1)
    assert repr(VALUE) == "Outer(inner=Inner(x=1), names=('a',), table={'b': Inner(x=2)})"


def test_none_can_be_changed() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        VALUE.names = ()  # type: ignore[misc]


def test_dataclasses_take_it_for_one_of_theirs() -> None:
    assert is_dataclass(Outer)
    assert is_dataclass(VALUE)
    assert replace(VALUE, names=()) == Outer(Inner(1), (), {"b": Inner(2)})
    assert asdict(VALUE) == {"inner": {"x": 1}, "names": ("a",), "table": {"b": {"x": 2}}}
    assert [each.name for each in fields(Outer)] == ["inner", "names", "table"]
    assert fields(Outer)[1].default == ()
    assert fields(Outer)[2].default_factory is dict
    with pytest.raises(TypeError, match="absent"):
        replace(VALUE, absent=1)


def test_a_class_of_a_class_has_fields_of_its_own() -> None:
    assert [each.name for each in fields(Outer)] == ["inner", "names", "table"]
    assert [each.name for each in fields(Wider)] == ["inner", "names", "table", "more"]
    assert replace(Wider(Inner(1)), more=2) == Wider(Inner(1), more=2)


def test_a_value_goes_from_process_to_process() -> None:
    assert pickle.loads(pickle.dumps(VALUE)) == VALUE  # noqa: S301 - our own bytes


def test_defaults_are_not_shared() -> None:
    assert Outer(Inner(1)).table is not Outer(Inner(1)).table
