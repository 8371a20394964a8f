"""A manifest in the making, and expressions over its vars."""

from dataclasses import dataclass, field
from typing import Any

from fuzz.dice import Dice

Json = dict[str, Any]

DTYPE_BYTES = {
    "bf16": 2, "f16": 2, "f32": 4, "fp8e4m3": 1, "fp8e8m0": 1, "i8": 1,
    "i32": 4, "u32": 4, "i64": 8, "u64": 8, "u8": 1,
}  # fmt: skip


@dataclass(slots=True)
class Draft:
    """A manifest in the making."""

    dice: Dice
    vars: dict[str, Json] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)
    states: dict[str, Json] = field(default_factory=dict)
    buffers: dict[str, Json] = field(default_factory=dict)
    ops: dict[str, Json] = field(default_factory=dict)
    modules: dict[str, Json] = field(default_factory=dict)
    programs: dict[str, Json] = field(default_factory=dict)
    bound: set[tuple[str, str]] = field(default_factory=set)

    @property
    def dealt(self) -> bool:
        """Whether a state deals positions."""
        return any(s.get("shard", {}).get("by") == "position" for s in self.states.values())

    def buffer_bytes(self, name: str) -> int:
        """Bytes of a buffer with every var at its max."""
        size = DTYPE_BYTES[self.buffers[name]["dtype"]]
        for dim in self.buffers[name]["shape"]:
            size *= self.vars[dim]["max"] if isinstance(dim, str) else dim
        return size


def draw_expr(draft: Draft, limit: int) -> Any:
    """An expression that is at least 1 and at most `limit` at both corners."""
    for _ in range(8):
        expr = _expr(draft, 3)
        low, high = (_value(draft, expr, corner) for corner in ("lower", "upper"))
        if 1 <= low <= limit and 1 <= high <= limit:
            return expr
    return 1


def _expr(draft: Draft, depth: int) -> Any:
    dice = draft.dice
    leaf = dice.pick([dice.between(1, 64), *draft.vars])
    match dice.pick(["leaf", "ceil_div", "mul", "add"]) if depth else "leaf":
        case "ceil_div":
            return {"ceil_div": [_expr(draft, depth - 1), dice.between(1, 32)]}
        case "mul":
            return {"mul": [_expr(draft, depth - 1), dice.between(1, 32)]}
        case "add":
            return {"add": [_expr(draft, depth - 1), _expr(draft, depth - 1)]}
        case _:
            return leaf


def _value(draft: Draft, expr: Any, corner: str) -> int:
    if isinstance(expr, int):
        return expr
    if isinstance(expr, str):
        return int(draft.vars[expr]["max"]) if corner == "upper" else 1
    ((operator, operands),) = expr.items()
    values = [_value(draft, operand, corner) for operand in operands]
    match operator:
        case "ceil_div":
            return -(-values[0] // values[1])
        case "mul":
            return values[0] * values[1]
        case _:
            return values[0] + values[1]
