"""What goes in with the calls of one caller: one sequence or several, and rows that are nobody's.

A program that no var tells how many sequences it steps always steps all that it takes. The rows of
those that are not there lie in a page of their own, where what they write does no harm, and in the
null line.
"""

from collections.abc import Sequence

from bedstone.errors import CapacityError
from bedstone.runtime.executor import Executor
from bedstone.runtime.inputs import Feed, call_inputs, input_roles, table_inputs
from bedstone.runtime.lease import Lease
from bedstone.runtime.sampler import Drawing, knob_inputs
from bedstone.spec.sampling import LIKELIEST
from bedstone.verify.protocol import Protocol, Shape

_NOBODYS = Drawing(LIKELIEST)


class Feeder:
    """Writes what the calls of `shapes` take, for sequences that have `leases`.

    Raises `CallerError`: a program reads an input that nobody can fill.
    Raises `CapacityError`: the sequences have all pages, and some rows are nobody's.
    """

    def __init__(
        self,
        session: Executor,
        protocol: Protocol,
        shapes: Sequence[Shape],
        leases: Sequence[Lease],
    ) -> None:
        self._session = session
        self._protocol = protocol
        self._roles = {s.program: input_roles(protocol, s, session.knobs) for s in shapes}
        self._fixed = {s.program: s.groups for s in shapes if pads(session, protocol, s)}
        self._pad = _pad_lease(session, protocol, shapes, leases) if self._fixed else None

    def write(self, shape: Shape, feeds: Sequence[Feed], drawings: Sequence[Drawing]) -> None:
        """Write what a call takes beside tables."""
        nobodys = self._nobodys(shape, len(feeds))
        rows = [Feed([0] * (shape.rows or 1), 0, pad, real=False) for pad in nobodys]
        for buffer, values in call_inputs(self._roles[shape.program], *feeds, *rows):
            self._session.write(buffer, values)
        for buffer, values in knob_inputs(
            self._session.knobs, [*drawings, *[_NOBODYS] * len(rows)]
        ):
            self._session.write(buffer, values)

    def write_tables(self, shapes: Sequence[Shape], leases: Sequence[Lease]) -> None:
        """Write the tables of sequences, in their order, that calls of `shapes` take."""
        nobodys = max((self._nobodys(shape, len(leases)) for shape in shapes), key=len)
        for buffer, entries in table_inputs(self._protocol, *leases, *nobodys):
            self._session.write(buffer, entries)

    def _nobodys(self, shape: Shape, sequences: int) -> list[Lease]:
        """Of each sequence that is not there, what its rows have."""
        missing = self._fixed.get(shape.program, sequences) - sequences
        return [] if self._pad is None else [self._pad] * missing


def pads(session: Executor, protocol: Protocol, shape: Shape) -> bool:
    """Whether a program may be called with rows that are nobody's."""
    fixed = shape.rows is not None and not protocol.told(shape.program, session.reads)
    return fixed and shape.groups > 1


def _pad_lease(
    session: Executor, protocol: Protocol, shapes: Sequence[Shape], leases: Sequence[Lease]
) -> Lease:
    """A page that nobody has, as often as the rows of a sequence go beyond it; the null slot."""
    unit = protocol.page_tokens or session.capacity.unit
    held = {page for lease in leases for page in lease.pages}
    there = session.capacity.tokens // unit if protocol.page_tables else 1
    free = next((page for page in reversed(range(there)) if page not in held), None)
    if free is None:
        raise CapacityError(f"no page of {there} is left for rows that are nobody's")
    rows = max(shape.rows or 1 for shape in shapes)
    return Lease((free,) * -(-rows // unit), unit, slot=0)
