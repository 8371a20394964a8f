"""Which launches may write a result over an operand: each value is read before it is written.

Their kernels give a block the same values of both, and read each once.
"""

from bedstone.lane.launch import Eltwise, Launch, Norm, Product, ToBuf


def in_place(launch: Launch) -> tuple[tuple[str, str], ...]:
    """The tensors that `launch` reads, each with the one it may write over it."""
    match launch:
        case Norm(x=x, add=add, sum=total, pre=pre) if add is not None and total is not None:
            addends = (x,) if pre is not None else (x, add)
            return tuple((read.tensor, total.tensor) for read in addends)
        case Product(add=add, dst=dst) if add is not None and isinstance(dst, ToBuf):
            return ((add.tensor, dst.tensor),) if dst.f32 else ()
        case Eltwise(a=a, b=b, dst=dst):
            operands = (a,) if b is None else (a, b)
            return tuple((read.tensor, dst.tensor) for read in operands if read.window is None)
        case _:
            return ()
