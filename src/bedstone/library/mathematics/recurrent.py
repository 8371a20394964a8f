"""What entries with a state of each sequence compute: convolutions and the gated delta rule."""

from bedstone.library.mathematics.family import Family

_WHERE = {
    "position": "consecutive(rows, seqs, 50)",
    "line": "lines_of(seqs, $lines)",
}
_SEQUENCES = {"rows": 6, "seqs": 2, "lines": 7}


def _conv(numbers: tuple[str, ...]) -> Family:
    """A convolution, or several side by side."""
    shapes, lines = {"line": "seqs", "position": "rows"}, []
    sizes: dict[str, int | float] = {"taps": 4, "act": 1, "eps": 1e-6}
    for at, number in enumerate(numbers):
        width = f"channels{number}"
        shapes |= {
            f"x{number}": f"rows {width}",
            f"w{number}": f"{width} taps",
            f"ring{number}": f"lines (taps-1)*{width}",
            f"y{number}": f"rows {width}",
        }
        lines.append(
            f"y{number}, ring{number} = convolved(x{number}, w{number}, ring{number}, line, "
            f"position, $act, $unit{number}, $eps)"
        )
        sizes |= {f"channels{number}": 96, f"unit{number}": 16 if at == 0 else 0}
        sizes |= {f"x{number}_row": 120, f"x{number}_unit": 60, f"x{number}_width": 48}
    return Family(
        "conv",
        shapes,
        "\n".join(lines),
        " ".join(f"y{number} ring{number}" for number in numbers),
        sizes=sizes | _SEQUENCES,
        makes=_WHERE,
    )


_HEADS = {
    "q": "rows key_heads*dk", "k": "rows key_heads*dk", "v": "rows heads*dv",
    "state": "lines heads*dk*dv", "line": "seqs", "position": "rows", "y": "rows heads*dv",
}  # fmt: skip
_DELTA = "y, state = delta_rule(q, k, v, g, beta, state, line, position, $key_heads, $scale)"
_DELTA_SIZES = {"key_heads": 2, "heads": 4, "dk": 16, "dv": 40, "scale": 0.3} | _SEQUENCES
_UNIT_KEYS = dict.fromkeys(
    ("q", "k"),
    "torch.nn.functional.normalize(torch.randn(rows, $key_heads, $dk), dim=-1).flatten(1)",
)

RECURRENT: dict[str, Family] = {
    "decay": Family(
        "gdn",
        {"a": "rows heads", "a_log": "heads", "dt": "heads", "y": "rows heads"},
        "y = -torch.exp(a_log) * softplus(a + dt)",
        sizes={"rows": 5, "heads": 12, "a_row": 20, "a_unit": 8, "a_width": 6},
    ),
    "conv": _conv(("",)),
    "conv_parts2": _conv(("0", "1")),
    "conv_parts3": _conv(("0", "1", "2")),
    "delta": Family(
        "gdn",
        _HEADS | {"g": "rows heads", "beta": "rows heads"},
        _DELTA,
        "y state",
        sizes=_DELTA_SIZES,
        makes=_WHERE | _UNIT_KEYS
        | {"g": "-2 * torch.rand(rows, $heads)", "beta": "torch.rand(rows, $heads)"},
    ),
    "delta_gates": Family(
        "gdn",
        _HEADS | {"a": "rows heads", "b": "rows heads", "a_log": "heads", "dt": "heads"},
        "g, beta = -torch.exp(a_log) * softplus(a + dt), sigmoid(b)\n" + _DELTA,
        "y state",
        sizes=_DELTA_SIZES | {"a_row": 8, "a_unit": 4, "a_width": 2, "b_row": 8, "b_unit": 4,
                              "b_width": 2},
        makes=_WHERE | _UNIT_KEYS,
    ),
}  # fmt: skip
