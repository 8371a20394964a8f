"""Random manifests that keep every rule, over every feature of the format.

A manifest is drawn in the order it depends on itself: vars, groups and states, then buffers, then
programs, whose calls invent the ops they need. What no call has used by the end is passed to one
more call, so nothing is declared in vain.
"""

from typing import Any

from fuzz.dice import Dice
from fuzz.draft import DTYPE_BYTES, Draft, Json, draw_expr
from fuzz.ops import Operand, draw_op

INTEGERS = ("i8", "i32", "u32", "i64", "u64", "u8")
INPUT_FILLS = ("token", "position", "valid", "slot", "seq_len", "cu_seqlens", "blocks")
OUTPUT_FILLS = ("tokens", "count", "error")
SCALAR_MAX = {"i32": 2**31 - 1, "i64": 2**63 - 1, "u8": 255}


def draw_manifest(seed: int) -> Json:
    """A manifest that keeps every rule; equal seeds make equal manifests."""
    draft = Draft(Dice(seed))
    _draw_vars(draft)
    _draw_groups(draft)
    _draw_states(draft)
    for index in range(draft.dice.between(2, 8)):
        _draw_buffer(draft, f"b{index}")
    _draw_buffer(draft, "in0", "input")
    _draw_buffer(draft, "out0", "output")
    _draw_peers(draft)
    _draw_programs(draft)
    _sweep(draft)
    return _finished(draft)


def _draw_vars(draft: Draft) -> None:
    dice = draft.dice
    axes = dice.shuffled(["rows", "groups", "ranks"])
    for index in range(dice.between(0, 4)):
        var: Json = {"max": dice.pick([1, 2, 3, 8, 16, 64, 255])}
        if axes and dice.chance(0.5):
            var["axis"] = axes.pop()
        draft.vars[f"v{index}"] = var


def _draw_groups(draft: Draft) -> None:
    for name in draft.dice.some(["ep", "tp", "pp"], 2):
        draft.groups[name] = draft.dice.between(1, 4)


def _draw_states(draft: Draft) -> None:
    dice = draft.dice
    ranked = any(var.get("axis") == "ranks" for var in draft.vars.values())
    deal = dice.pick([None, *draft.groups]) if not ranked else None
    for index in range(dice.between(0, 4)):
        draft.states[f"s{index}"] = _state(draft, deal)


def _state(draft: Draft, deal: str | None) -> Json:
    dice = draft.dice
    match dice.pick(["paged", "sequence", "fixed", "host"]):
        case "paged":
            state: Json = {"bytes_per_token": dice.between(1, 256)}
            if deal is not None:
                state["shard"] = {"by": "position", "group": deal}
            return state
        case "sequence":
            return _sequence_state(draft)
        case "fixed":
            return {"bytes": dice.between(1, 4096)}
        case _:
            extents = [dice.between(1, 8) for _ in range(dice.between(1, 3))]
            strides = [dice.between(1, 64) for _ in extents]
            if dice.chance(0.5):
                extents[0] = 0
            dtype = dice.pick(list(DTYPE_BYTES))
            return {"host": {"dtype": dtype, "shape": extents, "strides": strides}}


def _sequence_state(draft: Draft) -> Json:
    dice = draft.dice
    if not draft.groups or dice.chance(0.5):
        return {"bytes_per_seq": dice.between(1, 32) * 8}
    group = dice.pick(list(draft.groups))
    members = draft.groups[group]
    segments = [
        [dice.between(1, 4), dice.between(1, 16) * members] for _ in range(dice.between(1, 3))
    ]
    total = sum(rows * width for rows, width in segments)
    shard = {"by": "heads", "group": group, "segments": segments}
    return {"bytes_per_seq": total // members, "shard": shard}


def _draw_buffer(draft: Draft, name: str, kind: str | None = None) -> None:
    dice = draft.dice
    kinds = ["input", "output", "inout", "weight", "source", "workspace", "carry"]
    buffer: Json = {
        "dtype": dice.pick(list(DTYPE_BYTES)),
        "shape": [
            dice.pick([*draft.vars, dice.between(1, 64), dice.between(1, 64)])
            for _ in range(dice.between(1, 3))
        ],
        "kind": kind or dice.pick(kinds),
    }
    draft.buffers[name] = buffer
    if buffer["kind"] in {"weight", "source"}:
        buffer["bind"] = [_segment(draft) for _ in range(dice.between(1, 3))]
        if buffer["kind"] == "weight" and dice.chance(0.3) and not _is_ranked(buffer["bind"]):
            buffer["placement"] = "host"
    elif dice.chance(0.3):
        _draw_fill(draft, buffer)
    if buffer["kind"] != "source" and "placement" not in buffer and dice.chance(0.2):
        buffer["export"] = True
    if dice.chance(0.4):
        _draw_domain(draft, name)


def _is_ranked(segments: list[Json]) -> bool:
    return any('"group"' in str(s).replace("'", '"') for s in segments)


def _segment(draft: Draft) -> Json:
    dice = draft.dice
    segment: Json = {"tensor": _tensor(draft)}
    if dice.chance(0.25):
        segment["interleave"] = {"with": _tensor(draft), "rows": dice.between(1, 4)}
        return segment
    for axis in ("rows", "cols"):
        if dice.chance(0.3):
            segment[axis] = _ranges(draft)
    return segment


def _tensor(draft: Draft) -> Any:
    dice = draft.dice
    if draft.groups and dice.chance(0.3):
        group = dice.pick(list(draft.groups))
        return {"group": group, "tensors": [f"t.{i}" for i in range(draft.groups[group])]}
    return f"model.t{dice.between(0, 9)}"


def _ranges(draft: Draft) -> Any:
    dice = draft.dice
    if draft.groups and dice.chance(0.3):
        group = dice.pick(list(draft.groups))
        return {"group": group, "ranges": [_range(dice) for _ in range(draft.groups[group])]}
    return _range(dice)


def _range(dice: Dice) -> list[int]:
    low = dice.between(0, 8)
    return [low, low + dice.between(1, 8)]


def _draw_fill(draft: Draft, buffer: Json) -> None:
    fills = {"input": INPUT_FILLS, "output": OUTPUT_FILLS}.get(buffer["kind"], ())
    allowed = [fill for fill in fills if not (fill == "blocks" and draft.dealt)]
    if allowed:
        buffer["fill"] = draft.dice.pick(allowed)
        buffer["dtype"] = draft.dice.pick(["i32", "i64"])


def _draw_domain(draft: Draft, name: str) -> None:
    dice, buffer = draft.dice, draft.buffers[name]
    domain: Json = {}
    targets = [t for t in draft.buffers if t != name and t not in draft.states]
    targets += [t for t in draft.states if t not in draft.buffers]
    if buffer["dtype"] in INTEGERS and targets and dice.chance(0.5):
        domain["index_into"] = dice.pick(targets)
        if dice.chance(0.5):
            line = draft.states.get(domain["index_into"], {}).get("bytes_per_seq", 8)
            domain["stride"] = dice.pick([d for d in (1, 2, 4, 8) if line % d == 0])
    else:
        domain |= _bounds(draft, buffer)
    if len(buffer["shape"]) == 1 and (not domain or dice.chance(0.3)):
        domain["monotone"] = True
    if domain:
        buffer["domain"] = domain


def _bounds(draft: Draft, buffer: Json) -> Json:
    dice = draft.dice
    bounds: Json = {}
    if dice.chance(0.6):
        bounds["min"] = dice.between(-8, 1)
    if dice.chance(0.6):
        bounds["max"] = dice.pick([dice.between(1, 9), *draft.vars])
        if draft.vars and dice.chance(0.3):
            bounds["max"] = draw_expr(draft, 2**40)
    if buffer["dtype"] not in INTEGERS and dice.chance(0.5):
        bounds["min"] = -dice.between(0, 16) / 4
    return bounds


def _draw_peers(draft: Draft) -> None:
    dice = draft.dice
    targets = [name for name, buffer in draft.buffers.items() if buffer.get("export")]
    targets += [name for name, state in draft.states.items() if "host" not in state]
    for index in range(dice.between(0, 2) if draft.groups and targets else 0):
        group, of = dice.pick(list(draft.groups)), dice.pick(targets)
        draft.buffers[f"peer{index}"] = {
            "dtype": "u64",
            "shape": [draft.groups[group]],
            "kind": "peer",
            "of": of,
            "group": group,
        }
        draft.bound.add(("buf", of))
        draft.bound.add(("state", of))


def _draw_programs(draft: Draft) -> None:
    dice = draft.dice
    for index in range(dice.between(1, 3)):
        program: Json = {"calls": []}
        sort = dice.pick(["plain", "once", "derive", "batch", "batch"])
        if sort in {"once", "derive"}:
            program[sort] = True
        if sort == "batch":
            program["batch"] = _batch(draft)
            program["graph"] = dice.chance(0.5)
        draft.programs[f"p{index}"] = program
        _draw_calls(draft, program, dice.between(1, 4))


def _batch(draft: Draft) -> Json:
    dice = draft.dice
    batch: Json = {"groups": dice.between(1, 8), "rows": dice.pick([1, 4, *draft.vars])}
    if draft.vars and dice.chance(0.3):
        batch["context"] = dice.pick(list(draft.vars))
    return batch


def _draw_calls(draft: Draft, program: Json, count: int) -> None:
    written: set[str] = set()
    for _ in range(count):
        operands = _operands(draft, program, written, draft.dice.between(1, 5))
        _call(draft, program, operands)
        if draft.dice.chance(0.15):
            program["calls"].append(dict(program["calls"][-1]))


def _call(draft: Draft, program: Json, operands: list[Operand]) -> None:
    name = f"op{len(draft.ops)}"
    externs = not any(o.is_peer for o in operands)
    draft.ops[name] = draw_op(draft, operands, externs=externs, derive="derive" in program)
    call: Json = {"op": name, "args": [operand.arg for operand in operands]}
    if draft.dice.chance(0.3):
        call["label"] = f"step {name}"
    program["calls"].append(call)


def _operands(draft: Draft, program: Json, written: set[str], most: int) -> list[Operand]:
    derive = "derive" in program
    found: list[Operand] = []
    for _ in range(most):
        match draft.dice.pick(["buf", "buf", "buf", "state", "scalar"]):
            case "buf":
                names = [n for n, b in draft.buffers.items() if _binds(b["kind"], derive=derive)]
                if names:
                    found.append(_buffer_operand(draft, draft.dice.pick(names), written))
            case "state" if draft.states and not derive:
                found.append(_state_operand(draft, draft.dice.pick(list(draft.states))))
            case _:
                found.append(_scalar_operand(draft))
    return found


def _binds(kind: str, *, derive: bool) -> bool:
    return kind in {"weight", "source", "workspace", "carry"} if derive else kind != "source"


def _buffer_operand(draft: Draft, name: str, written: set[str]) -> Operand:
    dice, buffer = draft.dice, draft.buffers[name]
    draft.bound.add(("buf", name))
    directions = ["in", "out", "inout"]
    if buffer["kind"] in {"input", "weight", "source", "peer"}:
        directions = ["in"]
    elif buffer["kind"] in {"output", "workspace"} and name not in written:
        directions = ["out"]
    direction = dice.pick(directions)
    if direction != "in":
        written.add(name)
        draft.bound.add(("written", name))
    width, size = DTYPE_BYTES[buffer["dtype"]], draft.buffer_bytes(name)
    arg: Json = {"buf": name}
    if dice.chance(0.2):
        arg["offset"] = dice.between(0, size // width - 1) * width
    left = size - arg.get("offset", 0)
    return Operand(arg, f"{direction} buffer<{buffer['dtype']}>", left, buffer["kind"] == "peer")


def _state_operand(draft: Draft, name: str) -> Operand:
    draft.bound.add(("state", name))
    arg: Json = {"state": name}
    if draft.dice.chance(0.3):
        arg["offset"] = draft.dice.between(0, 2**32)
    return Operand(arg, f"{draft.dice.pick(['in', 'out', 'inout'])} state")


def _scalar_operand(draft: Draft) -> Operand:
    dice = draft.dice
    param = dice.pick(["i32", "i64", "f32", "u8"])
    choices: list[Json] = [{param: dice.between(0, 200)}]
    if param == "f32":
        choices = [{"f32": dice.between(-8, 8) / 4}]
    else:
        choices += [{"var": name} for name in draft.vars]
        choices.append({"expr": draw_expr(draft, SCALAR_MAX[param])})
    if param in {"i32", "i64"}:
        choices += [{"rank": group} for group in draft.groups]
    return Operand(dice.pick(choices), param)


def _sweep(draft: Draft) -> None:
    """One program, and one derive program, that bind whatever nothing bound."""
    sweep: Json = {"calls": []}
    derive: Json = {"derive": True, "calls": []}
    written: set[str] = set()
    for name, buffer in draft.buffers.items():
        kind = buffer["kind"]
        needs_write = kind in {"output", "carry"} and ("written", name) not in draft.bound
        if ("buf", name) in draft.bound and not needs_write:
            continue
        operand = _buffer_operand(draft, name, written)
        if needs_write:
            operand = Operand(operand.arg, f"out buffer<{buffer['dtype']}>", operand.left)
        _call(draft, derive if kind == "source" else sweep, [operand])
    states = [s for s in draft.states if ("state", s) not in draft.bound]
    scalars = [Operand({"var": name}, "i64") for name in draft.vars]
    scalars += [Operand({"rank": name}, "i32") for name in draft.groups]
    _call(draft, sweep, [_state_operand(draft, name) for name in states] + scalars)
    draft.programs["sweep"] = sweep
    if derive["calls"]:
        draft.programs["sweep derive"] = derive


def _finished(draft: Draft) -> Json:
    dice = draft.dice
    manifest: Json = {"schema_version": 7, "model": "drawn"}
    if draft.groups:
        manifest["topology"] = {"groups": draft.groups}
    if dice.chance(0.2):
        stages = dice.between(2, 4)
        manifest["cut"] = {"id": "c0ffee", "stage": dice.between(0, stages - 1), "stages": stages}
    manifest |= {
        "vars": draft.vars,
        "states": draft.states,
        "buffers": draft.buffers,
        "modules": draft.modules,
        "ops": draft.ops,
        "programs": draft.programs,
    }
    return manifest
