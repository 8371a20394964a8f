"""Links of the ops that carry a state."""

from bedstone.graph import step
from bedstone.lane import classes, launch
from bedstone.lane.classes import Convolved
from bedstone.lane.facts import Facts
from bedstone.lane.launch import Carry, ConvPart, DecayGates, Dst, OneLaunch, Read, ToBuf


def decay(op: step.Decay, dst: ToBuf, facts: Facts) -> OneLaunch:
    """The log of a decay."""
    rows, heads = facts.rows(op.a), facts.width(op.a)
    return launch.Decay(Read(op.a), op.a_log, op.dt, rows, heads, dst)


def convs(members: tuple[step.Conv | Convolved, ...], facts: Facts) -> OneLaunch:
    """Convolutions of one sequence."""
    made = [op if isinstance(op, Convolved) else Convolved(op, None) for op in members]
    first = made[0]
    return launch.Conv(
        tuple(_part(op, facts) for op in made),
        facts.rows(first.conv.x),
        facts.width(first.conv.w),
        first.act,
        facts.position_of(first.conv.ring),
    )


def _part(op: Convolved, facts: Facts) -> ConvPart:
    one = op.conv
    ring = _carry(one.ring, one.version, facts)
    dst = ToBuf(one.out)
    return ConvPart(Read(one.x), one.w, ring, facts.width(one.x), dst, op.unit, op.eps)


def _carry(before: str, after: str, facts: Facts) -> Carry:
    return Carry(facts.storage[before], before, after)


def delta(op: step.Delta, dst: Dst, facts: Facts) -> OneLaunch:
    """The delta rule."""
    return _delta(op, (Read(op.g), Read(op.beta)), dst, facts)


def gated_delta(op: classes.GatedDelta, dst: Dst, facts: Facts) -> OneLaunch:
    """The delta rule that makes its own gates."""
    one = op.delta
    return _delta(one, DecayGates(Read(one.g), Read(one.beta), op.a_log, op.dt), dst, facts)


def _delta(
    op: step.Delta, gates: tuple[Read, Read] | DecayGates, dst: Dst, facts: Facts
) -> OneLaunch:
    return launch.Delta(
        q=Read(op.q),
        k=Read(op.k),
        v=Read(op.v),
        gates=gates,
        state=_carry(op.state, op.version, facts),
        rows=facts.rows(op.v),
        key_heads=op.key_heads,
        heads=op.heads,
        dk=op.dk,
        dv=op.dv,
        scale=op.scale,
        pos=facts.position_of(op.state),
        dst=dst,
    )
