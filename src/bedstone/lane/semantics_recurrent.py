"""What the launches that carry a state compute, in terms."""

from collections.abc import Iterator

from bedstone.lane.launch import Carry, Conv, ConvPart, Decay, DecayGates, Delta, Dst, Version
from bedstone.lane.machine import Machine
from bedstone.lane.terms import Term

Writes = Iterator[tuple[Dst, Term]]


def decay(launch: Decay, run: Machine) -> Writes:
    """The log of a decay."""
    size = (launch.rows, launch.heads)
    x = run.read(launch.a)
    yield launch.dst, run.compute(run.terms.of("decay", launch.a_log, launch.dt, size, x))


def conv(launch: Conv, run: Machine) -> Writes:
    """Convolutions, each with its activation and its units' norm."""
    for part in launch.parts:
        yield part.dst, _convolved(part, launch, run)


def _convolved(part: ConvPart, launch: Conv, run: Machine) -> Term:
    size = (launch.rows, part.channels)
    before = _before(part.ring, launch.pos, run)
    made = ("conv", part.w, size, launch.taps, run.read(part.x), before)
    term = run.compute(run.terms.of(*made))
    run.carry(part.ring, run.terms.of("state", *made))
    if launch.act is not None:
        term = run.compute(run.terms.map(launch.act, None, term, size))
    if part.unit is not None:
        term = run.compute(run.terms.of("l2norm", size, part.unit, part.eps, term))
    return term


def _before(carry: Carry, pos: str, run: Machine) -> Term:
    """The state as it stands, which begins where the sequence's positions do."""
    own = run.facts.position_of(carry.table) if carry.table in run.facts.storage else None
    run.require(pos == own, f"carries `{carry.table}` from where `{pos}` begins")
    return run.cached(Version(carry.table, carry.before))


def delta(launch: Delta, run: Machine) -> Writes:
    """The delta rule, and its gates."""
    gates = launch.gates
    if isinstance(gates, DecayGates):
        size = (launch.rows, launch.heads)
        a, b = run.read(gates.a), run.read(gates.b)
        g = run.compute(run.terms.of("decay", gates.a_log, gates.dt, size, a))
        beta = run.compute(run.terms.map("sigmoid", None, b, size))
    else:
        g, beta = (run.read(gate) for gate in gates)
    sizes = (launch.rows, launch.key_heads, launch.heads, launch.dk, launch.dv, launch.scale)
    inputs = (run.read(launch.q), run.read(launch.k), run.read(launch.v))
    made = ("delta", sizes, *inputs, g, beta, _before(launch.state, launch.pos, run))
    term = run.compute(run.terms.of(*made))
    run.carry(launch.state, run.terms.of("state", *made))
    yield launch.dst, term
