"""Random ops for given operands: launches that write every `out` before anything reads it."""

from dataclasses import dataclass, field
from typing import Any

from fuzz.dice import Dice
from fuzz.draft import DTYPE_BYTES, Draft, Json, draw_expr

SOURCES = ("k.cubin", "hf:org/repo/k.cubin", "hf:o/r/a/b@rev", "https://host/path/k.cubin", "a b")
SCALAR_BYTES = {"i32": 4, "i64": 8, "f32": 4, "u8": 1}
TMA_BITS = {"u8": 8, "u16": 16, "u32": 32, "i32": 32, "u64": 64, "f16": 16, "f32": 32, "u4": 4}
GRID_LIMIT = 65_535
ALGO = {
    "id": 1, "tile": 2, "stages": 3, "split_k": 1, "reduction": 0,
    "swizzle": 0, "custom": 0, "inner_shape": 0, "cluster_shape": 0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Operand:
    """A call's argument and the parameter it meets; `left` is the bytes past a buffer's offset."""

    arg: Json
    param: str
    left: int = 0
    is_peer: bool = False


@dataclass(slots=True)
class OpDraft:
    """An op in the making, with what its launches have written so far: `out` indices, scratch."""

    draft: Draft
    operands: list[Operand]
    written: set[int] = field(default_factory=set)
    scratch: dict[str, Json] = field(default_factory=dict)

    @property
    def dice(self) -> Dice:
        return self.draft.dice


def draw_op(draft: Draft, operands: list[Operand], *, externs: bool, derive: bool) -> Json:
    """An op that takes `operands` and keeps every rule."""
    op = OpDraft(draft, operands)
    launches = [_explicit(op, externs=externs) for _ in range(draft.dice.between(0, 2))]
    outs = {i for i, o in enumerate(operands) if o.param.startswith("out ")}
    if not launches or outs - op.written:
        launches.append(_launch(op, extern=externs and not derive and draft.dice.chance(0.2)))
    impl: Json = {"launches": launches}
    if op.scratch:
        impl["scratch"] = op.scratch
    return {"params": [o.param for o in operands], "impl": impl}


def _explicit(op: OpDraft, *, externs: bool) -> Json:
    launch = _launch(op, extern=externs and op.dice.chance(0.2))
    pairs = [_pair(op, pack="module" in launch) for _ in range(op.dice.between(1, 5))]
    launch["params"] = [param for param, _ in pairs]
    launch["args"] = [arg for _, arg in pairs]
    return launch


def _launch(op: OpDraft, *, extern: bool) -> Json:
    dice = op.dice
    launch = _extern(dice) if extern else _kernel(op)
    if op.draft.vars and dice.chance(0.2):
        low = dice.between(0, 8)
        launch["when"] = {"var": dice.pick(list(op.draft.vars)), "min": low, "max": low + 1}
        for end in dice.some(["min", "max"], 2):
            del launch["when"][end]
    return launch


def _extern(dice: Dice) -> Json:
    if dice.chance(0.3):
        return {"entry": "extern:cublaslt_bf16_tn", "algo": dict(ALGO)}
    return {"entry": dice.pick(["extern:cublaslt_bf16_tn_acc", "extern:any", "extern:"])}


def _kernel(op: OpDraft) -> Json:
    dice, draft = op.dice, op.draft
    module = f"m{dice.between(0, 2)}"
    draft.modules.setdefault(module, {"source": dice.pick(SOURCES), "sha256": "ab" * 32})
    launch: Json = {
        "module": module,
        "entry": f"kernel_{dice.between(0, 99)}",
        "block": dice.pick([[128, 1, 1], [1024, 1, 1], [16, 8, 8], [1, 1, 64]]),
        "grid": [draw_expr(draft, GRID_LIMIT) for _ in range(3)],
    }
    if dice.chance(0.2):
        launch["cluster"] = dice.pick([[1, 1, 1], [2, 1, 1], [2, 2, 4]])
        launch["grid"] = [16, 16, 16]
    if dice.chance(0.3):
        launch["shared_mem"] = draw_expr(draft, 232_448)
    if dice.chance(0.2):
        launch["pdl"] = True
    return launch


def _pair(op: OpDraft, *, pack: bool) -> tuple[str, Json]:
    """A launch parameter and an argument for it."""
    dice = op.dice
    match dice.pick(["param", "param", "param", "scratch", "literal", "rank", "pack"]):
        case "param" if op.operands:
            return _forward(op, dice.between(0, len(op.operands) - 1))
        case "scratch":
            return _scratch(op)
        case "rank" if op.draft.groups:
            return dice.pick(["i32", "i64"]), {"rank": dice.pick(list(op.draft.groups))}
        case "pack" if pack:
            size, fields = _pack(op)
            return f"bytes<{size}>", {"pack": {"size": size, "fields": fields}}
        case _:
            return _literal(dice)


def _literal(dice: Dice) -> tuple[str, Json]:
    scalar = dice.pick(list(SCALAR_BYTES))
    value: Any = dice.between(-4, 4) / 8 if scalar == "f32" else dice.between(0, 127)
    return scalar, {scalar: value}


def _forward(op: OpDraft, index: int) -> tuple[str, Json]:
    direction, _, kind = op.operands[index].param.partition(" ")
    if not kind:
        return direction, {"param": index}
    choices = {"in": ["in"], "inout": ["in", "out", "inout"], "out": ["out"]}[direction]
    if index in op.written:
        choices = ["in", "out", "inout"]
    chosen = op.dice.pick(choices)
    if direction == "out" and chosen != "in":
        op.written.add(index)
    return f"{chosen} {kind}", {"param": index}


def _scratch(op: OpDraft) -> tuple[str, Json]:
    dice = op.dice
    name = f"t{dice.between(0, 2)}"
    direction = dice.pick(["in", "out", "inout"]) if name in op.scratch else "out"
    dtype = _declared(op, name)["dtype"]
    return f"{direction} buffer<{dtype}>", {"scratch": name}


def _declared(op: OpDraft, name: str) -> Json:
    """The scratch of that name, which the caller is about to write if it is new."""
    dice = op.dice
    if name not in op.scratch:
        shape = [dice.pick([dice.between(1, 64), *op.draft.vars]) for _ in range(2)]
        op.scratch[name] = {"dtype": dice.pick(list(DTYPE_BYTES)), "shape": shape}
    return op.scratch[name]


def _pack(op: OpDraft) -> tuple[int, list[Json]]:
    dice = op.dice
    fields: list[Json] = []
    at = 0
    for _ in range(dice.between(0, 5)):
        source, width = _source(op)
        if "tensormap" in source:
            at = -(-at // 64) * 64
        if "tensormap" not in source and dice.chance(0.2):
            source["width"] = width = dice.between(1, 16)
        fields.append({"at": at, **source})
        at += width + dice.between(0, 3)
    return max(at + dice.between(0, 8), 1), dice.shuffled(fields)


def _source(op: OpDraft) -> tuple[Json, int]:
    """A field's source and the width it has of itself."""
    dice = op.dice
    match dice.pick(["param", "scratch", "literal", "number", "number", "map", "map"]):
        case "param" if op.operands:
            return _param_source(op, dice.between(0, len(op.operands) - 1))
        case "scratch":
            name = f"t{dice.between(0, 2)}"
            _declared(op, name)
            return {"scratch": name}, 8
        case "number":
            numbers: list[Json] = [{"var": name} for name in op.draft.vars]
            numbers += [{"rank": group} for group in op.draft.groups]
            return dice.pick([*numbers, {"expr": draw_expr(op.draft, 2**64 - 1)}]), 4
        case "map" if any(" " in o.param for o in op.operands):
            pointers = [i for i, o in enumerate(op.operands) if " " in o.param]
            return {"tensormap": _tensormap(op, dice.pick(pointers))}, 128
        case _:
            scalar, literal = _literal(dice)
            return literal, SCALAR_BYTES[scalar]


def _param_source(op: OpDraft, index: int) -> tuple[Json, int]:
    param = op.operands[index].param
    if " " not in param:
        return {"param": index}, SCALAR_BYTES[param]
    if param.startswith("out "):
        op.written.add(index)
    return {"param": index}, 8


def _tensormap(op: OpDraft, index: int) -> Json:
    """A tensor map that stays within what the operand has."""
    dice, operand = op.dice, op.operands[index]
    if operand.param.startswith("out "):
        op.written.add(index)
    dtype = dice.pick(list(TMA_BITS))
    unit = 128 // TMA_BITS[dtype]
    if operand.param.endswith("buffer") or operand.param.startswith(("in b", "out b", "inout b")):
        most = operand.left
    else:
        most = 2**40
    if most < 16:
        return _wrapping(index, dtype, unit)
    rows = min(dice.between(1, 4), most // 16)
    dims, strides = [unit, dice.pick([0, rows])], [16]
    if dice.chance(0.3):
        dims, strides = [unit], []
    if dice.chance(0.2) and strides:
        dims, strides = [unit, 1, dims[1]], [16, 16]
    return {
        "param": index,
        "dtype": dtype,
        "dims": dims,
        **({"strides": strides} if strides else {}),
        "box": [unit, *(1 for _ in strides)],
        "swizzle": dice.pick([0, 32, 64, 128]),
        "l2_promotion": dice.pick([0, 64, 128, 256]),
        "oob_nan": dice.chance(0.5),
    }


def _wrapping(index: int, dtype: str, unit: int) -> Json:
    return {
        "param": index,
        "dtype": dtype,
        "dims": [unit, 2**31, 2**31],
        "strides": [2**63, 2**63],
        "box": [unit, 1, 1],
        "wrap": True,
    }
