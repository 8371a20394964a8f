"""What the schema has and the reference reader lacks: sampling fills, `clamp`, `chat`."""

from typing import Any

import pytest

from bedstone.spec.codec import parse
from bedstone.verify import check
from verify.tiny_manifest import broken

GRID = "/ops/embed/impl/launches/0/grid/1"
SAMPLING = {"temperature": "f32", "top_k": "i32", "top_p": "f32", "min_p": "f32", "seed": "i64"}


def rules(*changes: tuple[str, Any]) -> list[str]:
    return [fault.rule for fault in check(parse(broken(*changes)))]


def fill(name: str, dtype: str, kind: str = "input") -> tuple[str, Any]:
    return ("/buffers/z", {"dtype": dtype, "shape": ["g"], "kind": kind, "fill": name})


@pytest.mark.parametrize("name", SAMPLING)
@pytest.mark.parametrize("dtype", ["f32", "i32", "i64", "bf16", "u32"])
def test_a_sampling_fill_has_one_dtype(name: str, dtype: str) -> None:
    assert ("L3" in rules(fill(name, dtype))) == (dtype != SAMPLING[name])


@pytest.mark.parametrize("name", SAMPLING)
def test_a_sampling_fill_is_written_into_an_input(name: str) -> None:
    assert "L1" in rules(fill(name, SAMPLING[name], "output"))
    assert "L1" not in rules(fill(name, SAMPLING[name]))


def test_a_clamp_is_a_sound_grid_where_it_is_not_empty() -> None:
    assert rules((GRID, {"clamp": [{"add": ["n", 4]}, 4, 8]})) == []


def test_a_clamp_that_is_empty_at_a_corner_is_an_empty_grid() -> None:
    assert rules((GRID, {"clamp": ["n", 4, 8]})) == ["G8"]


def test_what_a_clamp_is_of_is_well_formed() -> None:
    assert rules((GRID, {"clamp": [{"ceil_div": ["q", 0]}, 0, 8]})) == ["E2", "E1"]


def test_a_var_in_a_clamp_is_used() -> None:
    bound = ("/buffers/ids/domain/max", {"clamp": ["z", 0, 9]})
    assert rules(("/vars/z", {"max": 4}), bound) == []


def test_chat_is_inert() -> None:
    assert rules(("/chat", {"tool_parser": "any"})) == []
