"""What dense entries compute: products, norms, rotations, moves, functions of each value."""

from dataclasses import replace

from bedstone.library.mathematics.family import Family

_MOVED = {"slots": 9, "pitch": 76, "column": 4}
_NORM = {"rows": 5, "width": 64, "unit": 64, "eps": 1e-6, "plus_one": 0} | _MOVED
_PART = {"x_row": 96, "x_unit": 48, "x_width": 32, "offset": 3}
_ROPE = {"rows": 5, "head_dim": 32, "rot": 16, "kind": 0, "eps": 1e-6, "plus_one": 1,
         "capacity": 40, "slots": 9, "pitch": 140, "column": 4, "offset": 3}  # fmt: skip
_TURNS = {
    "position": "torch.randint(0, $capacity, (rows,), dtype=torch.int32)",
    "slot": "slots_of(rows, $slots)",
}
_SLOT = {"slot": "slots_of(rows, $slots)"}
_TOKEN = {"token": "torch.randint(0, $vocab, (rows,), dtype=torch.int32)"}


def _parts(count: int) -> Family:
    """Products of one input by several matrices."""
    every = range(count)
    shapes = {"x": "rows k"}
    for i in every:
        shapes |= {f"w{i}": f"n{i} k", f"bias{i}": f"n{i}", f"y{i}": f"rows n{i}"}
    lines = [f"y{i} = torch.matmul(x, w{i}.T)\n?bias{i}: y{i} = y{i} + bias{i}" for i in every]
    return Family(
        "gemm",
        shapes,
        "\n".join(lines),
        " ".join(f"y{i}" for i in every),
        {"rows": 5, "k": 512, "slots": 9, **{f"n{i}": 64 - 24 * i % 40 for i in every}},
        _SLOT,
    )


def _rope(turn: str, names: str) -> str:
    lines = [
        f"x{i} = x{i}.reshape(-1, $heads{i}, $head_dim)\n"
        f"?w{i}: x{i} = normed(x{i}.flatten(0, 1), w{i}, $head_dim, $eps, $plus_one)"
        f".reshape(x{i}.shape)\n"
        f"y{i} = {turn.format(f'x{i}')}.flatten(1)"
        for i in names.split(",")
    ]
    return "\n".join(lines)


_TURN = "turned({}, cos[position], sin[position], $rot, $kind, $offset)"
_ROPE_TABLES = {"position": "rows", "cos": "capacity rot//2", "sin": "capacity rot//2"}


def _function(body: str, **sizes: int | float) -> Family:
    return Family(
        "elementwise",
        {"x": "count", "y": "count"},
        body,
        sizes={"count": 5000} | sizes,
    )


def _of_a_part(body: str) -> Family:
    return Family(
        "elementwise",
        {"x": "rows width", "y": "rows width"},
        body,
        sizes={"rows": 5, "width": 64} | _PART,
    )


_ACTIVATIONS = ("silu", "gelu_tanh", "sigmoid", "softplus")


DENSE: dict[str, Family] = {
    "embed": Family(
        "embed",
        {"token": "rows", "w": "vocab width", "y": "rows width"},
        "y = w[token]",
        sizes={"rows": 5, "width": 512, "vocab": 97},
        makes=_TOKEN,
    ),
    "embed_scaled": Family(
        "embed",
        {"token": "rows", "w": "vocab width", "y": "rows width"},
        "y = w[token] * $by",
        sizes={"rows": 5, "width": 512, "vocab": 97, "by": 2.5},
        makes=_TOKEN,
    ),
    "linear": Family(
        "gemm",
        {"x": "rows k", "w": "n k", "bias": "n", "add": "rows n", "y": "rows n"},
        "y = torch.matmul(x, w.T)\n?bias: y = y + bias\n?add: y = y + add\n"
        "?cap: y = $cap * torch.tanh(y / $cap)",
        sizes={"rows": 5, "k": 512, "n": 72, "slots": 9, "cap": 2.0},
        makes=_SLOT,
    ),
    "parts2": _parts(2),
    "parts3": _parts(3),
    "parts4": _parts(4),
    "glu": Family(
        "glu",
        {"x": "rows k", "wg": "n k", "wu": "n k", "y": "rows n"},
        "y = activated(torch.matmul(x, wg.T), $act) * torch.matmul(x, wu.T)",
        sizes={"rows": 5, "k": 512, "n": 96, "act": 0},
    ),
    **{
        f"in_panels_{name}": Family(
            "move",
            {"x": "rows width", "y": "rows width"},
            f"y = in_panels(x, {block})",
            sizes={"rows": 48, "width": 3 * block},
        )
        for name, block in (("q8_0", 34), ("q4_0", 18), ("q4_1", 20))
    },
    "norm": Family(
        "rmsnorm",
        {"x": "rows width", "w": "unit", "y": "rows width"},
        "y = normed(x, w, $unit, $eps, $plus_one)",
        sizes=_NORM | _PART,
        makes=_SLOT,
    ),
    "add_norm": Family(
        "fused_add_rmsnorm",
        {"x": "rows width", "d": "rows width", "w": "unit", "sum": "rows width",
         "y": "rows width"},
        "sum = x + d\ny = normed(sum, w, $unit, $eps, $plus_one)",
        "sum y",
        sizes=_NORM,
    ),
    "add_norm_pre": Family(
        "fused_add_rmsnorm",
        {"x": "rows width", "d": "rows width", "dw": "width", "w": "unit", "sum": "rows width",
         "y": "rows width"},
        "sum = x + normed(d, dw, $width, $pre_eps, $pre_plus_one)\n"
        "y = normed(sum, w, $unit, $eps, $plus_one)",
        "sum y",
        sizes=_NORM | {"pre_eps": 1e-5, "pre_plus_one": 1},
    ),
    "gated_norm": Family(
        "rmsnorm",
        {"x": "rows width", "w": "unit", "z": "rows width", "y": "rows width"},
        "y = normed(x, w, $unit, $eps, $plus_one) * silu(z)",
        sizes=_NORM | {"unit": 32, "z_row": 96, "z_unit": 48, "z_width": 32},
    ),
    "l2norm": Family(
        "norm",
        {"x": "rows width", "y": "rows width"},
        "y = of_length_one(x, $unit, $eps)",
        sizes=_NORM | {"unit": 16},
    ),
    "quantize": Family(
        "quantize",
        {"x": "rows width", "y": "rows width"},
        "y = x",
        sizes={"rows": 5, "width": 64} | _PART,
    ),
    "rope": Family(
        "rope",
        {"x": "rows heads*head_dim", "w": "head_dim", "y": "rows heads*head_dim"} | _ROPE_TABLES,
        _rope(_TURN, ""),
        sizes=_ROPE | {"heads": 4, "x_row": 160, "x_unit": 40, "x_width": 32},
        makes=_TURNS,
        defaults={"offset": 0},
    ),
    "rope_parts": Family(
        "rope",
        {
            **{f"x{i}": f"rows heads{i}*head_dim" for i in (0, 1)},
            **{f"w{i}": "head_dim" for i in (0, 1)},
            **{f"y{i}": f"rows heads{i}*head_dim" for i in (0, 1)},
        } | _ROPE_TABLES,
        _rope(_TURN, "0,1"),
        "y0 y1",
        sizes=_ROPE | {"heads0": 6, "heads1": 4, "x0_row": 240, "x0_unit": 40, "x0_width": 32,
                       "x1_row": 160, "x1_unit": 40, "x1_width": 32},
        makes=_TURNS,
        defaults={"offset": 0},
    ),
    "rope_table": Family(
        "rope",
        {"freqs": "256", "cos": "capacity half", "sin": "capacity half"},
        "angle = torch.arange($capacity, device=freqs.device)[:, None] * freqs[:$half]\n"
        "cos, sin = torch.cos(angle) * $factor, torch.sin(angle) * $factor",
        "cos sin",
        sizes={"capacity": 200, "half": 16, "factor": 1.25},
        makes={"freqs": "1e4 ** -torch.rand(256)"},
    ),
    "set_rows": Family(
        "move",
        {"x": "rows width", "y": "rows width"},
        "y = x",
        sizes={"rows": 5, "width": 64} | _MOVED,
        makes=_SLOT,
    ),
    "set_cols": Family(
        "move",
        {"x": "rows width", "y": "rows width"},
        "y = x",
        sizes={"rows": 5, "width": 64} | _MOVED,
        makes=_SLOT,
    ),
    "take_row": Family(
        "move",
        {"x": "stored width", "y": "width"},
        "y = x[$row - 1]",
        sizes={"row": 3, "stored": 5, "width": 64},
    ),
    "take_part": Family(
        "move",
        {"x": "rows width", "y": "rows width"},
        "y = x",
        sizes={"rows": 5, "width": 64} | _PART,
    ),
    "concat": Family(
        "move",
        {"a": "rows units*wa", "b": "rows units*wb", "y": "rows units*(wa+wb)"},
        "a, b = a.reshape(-1, $units, $wa), b.reshape(-1, $units, $wb)\n"
        "y = torch.cat((a, b), -1).flatten(1)",
        sizes={"rows": 5, "units": 4, "wa": 8, "wb": 4, "a_row": 40, "a_unit": 10, "a_width": 8,
               "b_row": 6, "b_unit": 0, "b_width": 4},
    ),
    "add_row": Family(
        "elementwise",
        {"a": "rows width", "b": "width", "y": "rows width"},
        "y = a + b",
        sizes={"rows": 5, "width": 64},
    ),
    "add": Family(
        "elementwise",
        {"a": "count", "b": "count", "y": "count"},
        "y = a + b",
        sizes={"count": 5000},
    ),
    "mul": Family(
        "elementwise",
        {"a": "count", "b": "count", "y": "count"},
        "y = a * b",
        sizes={"count": 5000},
    ),
    # of a longer input, since one that is to be returned as it is proves nothing
    "copy_rows": Family(
        "move",
        {"x": "count+8", "y": "count"},
        "y = x[:$count]",
        sizes={"count": 5000},
    ),
    "scale": _function("y = x * $by", by=0.3),
    "softcap": _function("y = $cap * torch.tanh(x / $cap)", cap=2.0),
    "cast_f16_f32": _function("y = x"),
    "cast_bf16_f32": _function("y = x"),
    **{name: _function(f"y = {name}(x)") for name in _ACTIVATIONS},
    **{f"{name}_p": _of_a_part(f"y = {name}(x)") for name in _ACTIVATIONS},
}  # fmt: skip

_IN_PANELS = ("linear", "parts2", "parts3", "parts4", "glu")

DENSE |= {
    f"panels_{name}": replace(
        DENSE[name],
        sizes={
            size: -(-value // 16) * 16 if size.startswith("n") else value
            for size, value in DENSE[name].sizes.items()
        },
    )
    for name in _IN_PANELS
}
"""The same of matrices whose rows lie in panels, of which there are whole ones."""
