"""What each op of a StepGraph asks of its inputs and attributes, as rows of (holds, message).

The first row of an op that does not hold is its problem: later rows may lean on it.
"""

from bedstone.graph import check_dense, check_heads, check_mixture, check_placed, check_recurrent
from bedstone.graph.check_scope import Rows, Scope
from bedstone.graph.step import DenseOp, HeadOp, MixtureOp, Op, PlacedOp


def shape_rows(op: Op, scope: Scope) -> Rows:
    """What the shape of the op's result leans on: the kinds and shapes of its inputs."""
    if isinstance(op, DenseOp):
        return check_dense.shapes(op, scope)
    if isinstance(op, PlacedOp):
        return check_placed.shapes(op, scope)
    if isinstance(op, HeadOp):
        return check_heads.shapes(op, scope)
    if isinstance(op, MixtureOp):
        return check_mixture.shapes(op, scope)
    return check_recurrent.shapes(op, scope)


def attribute_rows(op: Op, scope: Scope) -> Rows:
    """What else an op asks for, where its shapes are right."""
    if isinstance(op, DenseOp):
        return check_dense.attributes(op, scope)
    if isinstance(op, PlacedOp):
        return check_placed.attributes(op, scope)
    if isinstance(op, HeadOp):
        return check_heads.attributes(op, scope)
    if isinstance(op, MixtureOp):
        return check_mixture.attributes(op, scope)
    return check_recurrent.attributes(op)
