"""The parameters of the kernels that carry a state of each sequence."""

from bedstone.build.bind import read, sizes, values, window, write
from bedstone.build.operand import Cache, Count, Int, Io, Operands, Vector
from bedstone.lane.launch import Conv, Decay, DecayGates, Delta

_ACT_CODE = {None: 0, "silu": 1, "gelu_tanh": 2}


def decay(launch: Decay) -> Operands:
    """The log of a decay."""
    return {
        "a": values(launch.a),
        **window(launch.a, launch.heads, "a"),
        "a_log": Vector(launch.a_log),
        "dt": Vector(launch.dt),
        "rows": Count(launch.rows),
        **write(launch.dst),
        **sizes(heads=launch.heads),
    }


def conv(launch: Conv) -> Operands:
    """Convolutions of one sequence."""
    out: Operands = {
        "line": Io("line"),
        "position": Io("position"),
        "rows": Count(launch.rows),
        **sizes(
            taps=launch.taps,
            act=_ACT_CODE[launch.act],
            eps=max((float(part.eps) for part in launch.parts), default=0.0),
        ),
    }
    for i, part in enumerate(launch.parts):
        suffix = "" if len(launch.parts) == 1 else str(i)
        out |= read(part.x, f"x{suffix}") | window(part.x, part.channels, f"x{suffix}")
        out |= {f"w{suffix}": Vector(part.w), f"ring{suffix}": Cache(part.ring.table)}
        out |= write(part.dst, suffix)
        out |= {f"channels{suffix}": Int(part.channels), f"unit{suffix}": Int(part.unit or 0)}
    return out


def delta(launch: Delta) -> Operands:
    """The gated delta rule, with or without what makes its gates."""
    return {
        "q": values(launch.q),
        "k": values(launch.k),
        "v": values(launch.v),
        **_gates(launch),
        "state": Cache(launch.state.table),
        "line": Io("line"),
        "position": Io("position"),
        "rows": Count(launch.rows),
        **write(launch.dst),
        **sizes(
            key_heads=launch.key_heads,
            heads=launch.heads,
            dk=launch.dk,
            dv=launch.dv,
            scale=float(launch.scale),
        ),
    }


def _gates(launch: Delta) -> Operands:
    gates = launch.gates
    if not isinstance(gates, DecayGates):
        g, beta = gates
        return {"g": values(g), "beta": values(beta)}
    return {
        "a": values(gates.a),
        "b": values(gates.b),
        **window(gates.a, launch.heads, "a"),
        **window(gates.b, launch.heads, "b"),
        "a_log": Vector(gates.a_log),
        "dt": Vector(gates.dt),
    }
