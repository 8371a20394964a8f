"""The launches that carry a state, in NumPy."""

from bedstone.graph import step
from bedstone.graph.step import Out
from bedstone.lane.launch import Conv, ConvPart, Decay, DecayGates, Delta
from bedstone.oracle import arithmetic, recurrent
from bedstone.oracle.arithmetic import ACTIVATIONS
from bedstone.oracle.execution import Array, Execution
from bedstone.oracle.run_dense import Writes, X, Y


def decay(run: Execution, launch: Decay) -> Writes:
    """The log of a decay."""
    constants = run.constants[launch.a_log], run.constants[launch.dt]
    yield launch.dst, recurrent.decay(run.read(launch.a), *constants)


def conv(run: Execution, launch: Conv) -> Writes:
    """Convolutions, each with its activation and its units' norm."""
    for part in launch.parts:
        yield part.dst, _convolved(run, part, launch)


def _convolved(run: Execution, part: ConvPart, launch: Conv) -> Array:
    ring = _state(run, part.ring.table, launch.pos, launch.rows)
    y = recurrent.conv(run.read(part.x), run.constants[part.w], ring)
    if launch.act is not None:
        y = ACTIVATIONS[launch.act](y)
    if part.unit is not None:
        y = arithmetic.l2norm(y, step.L2Norm(X, Y, part.eps, part.unit))
    return y


def _state(run: Execution, table: str, pos: str, rows: int) -> Array:
    """A state, zeros where its sequence begins with this step, whatever it holds."""
    count = run.schedule.row_count(rows)
    taken = run.params[count] if isinstance(count, str) else count
    state = run.tables[table]
    if run.params[pos] == taken:
        state[:] = 0
    return state


def delta(run: Execution, launch: Delta) -> Writes:
    """The delta rule, and its gates."""
    made = launch.gates
    if isinstance(made, DecayGates):
        constants = run.constants[made.a_log], run.constants[made.dt]
        g = recurrent.decay(run.read(made.a), *constants)
        beta = ACTIVATIONS["sigmoid"](run.read(made.b))
    else:
        g, beta = (run.read(gate) for gate in made)
    op = step.Delta(
        *(X, X, X, X, X, X),
        out=Y,
        version=Out("next"),
        key_heads=launch.key_heads,
        heads=launch.heads,
        dk=launch.dk,
        dv=launch.dv,
        scale=launch.scale,
    )
    qkv = (run.read(launch.q), run.read(launch.k), run.read(launch.v))
    state = _state(run, launch.state.table, launch.pos, launch.rows)
    yield launch.dst, recurrent.delta(qkv, recurrent.Gates(g, beta), state, op)
