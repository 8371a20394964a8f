"""What a serving loop may do with a manifest, and every reason it may not.

The loop learns no model and no name: it acts on fills, batches and axes. `protocol` reads them off
a verified manifest.
"""

from collections.abc import Callable, Collection
from math import lcm

from bedstone.errors import CallerError, ManifestError
from bedstone.spec.fault import Fault
from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import Axis, Fill, Manifest
from bedstone.verify.protocol.axes import AxisVar
from bedstone.verify.protocol.fill_rules import FILL_ROWS
from bedstone.verify.protocol.program_rules import PROGRAM_ROWS
from bedstone.verify.protocol.programs import Chain, Shape, chains_of, shapes_of
from bedstone.verify.protocol.reading import Reading, each_filled
from bedstone.verify.protocol.roles import Role
from bedstone.verify.protocol.table_rules import TABLE_ROWS
from bedstone.verify.protocol.tables import (
    LineTable,
    PageTable,
    line_tables,
    page_tables,
    table_states,
)
from bedstone.verify.rule import Rows, judge, rules_of
from bedstone.verify.verified import Verified

PROTOCOL_ROWS: Rows[Reading] = (*FILL_ROWS, *TABLE_ROWS, *PROGRAM_ROWS)
PROTOCOL_RULES = tuple(rules_of(PROTOCOL_ROWS))


class Protocol(Frozen):
    """What a serving loop may do with a manifest.

    `rows`, `groups`, `ranks` are the vars of a call. `roles` are the buffers it fills or reads, by
    name; `page_tables` and `line_tables` those it fills from a sequence's lease. `arrives` are what
    the stage before of a cut copies in; `staged` inputs are none of these, so somebody stages them
    by name. `shapes` are the calls it may make.
    `derive` programs run inside loading and `once` programs after it, in this order. `page_tokens`
    is the least number of tokens that is whole pages in every table (None without one).
    """

    rows: AxisVar
    groups: AxisVar
    ranks: AxisVar | None
    roles: tuple[Role, ...]
    page_tables: tuple[PageTable, ...]
    line_tables: tuple[LineTable, ...]
    arrives: tuple[str, ...]
    staged: tuple[str, ...]
    shapes: tuple[Shape, ...]
    chains: tuple[Chain, ...]
    once: tuple[str, ...]
    derive: tuple[str, ...]
    page_tokens: int | None

    def role(self, fill: Fill, over: Axis | None = None) -> Role | None:
        """The buffer with `fill`, over that axis when one is named; `tokens` may have several."""
        found = (r for r in self.roles if r.fill == fill and over in {None, r.over})
        return next(found, None)

    def shape(self, program: str) -> Shape | None:
        """The shape of a program, None for one that a loop does not drive."""
        return next((s for s in self.shapes if s.program == program), None)

    def choose(self, groups: int, rows: int | None) -> Shape | None:
        """The program for `groups` sequences of `rows` rows (None: rows set per call).

        The one with exactly these rows that covers the groups with the fewest to spare.
        """
        fitting = (s for s in self.shapes if s.rows == rows and s.groups >= groups)
        return min(fitting, key=lambda s: s.groups, default=None)

    @property
    def chunk(self) -> Shape | None:
        """The program that takes a prompt, any number of rows at a time."""
        return self.choose(1, None)

    def step(self, groups: int = 1) -> Shape | None:
        """The program that takes one row of each of `groups` sequences.

        Where none is for that, one whose rows are set per call will do, if it hands tokens back.
        """
        found, others = self.choose(groups, 1), self.choose(groups, None)
        if others is not None and others.emits and (found is None or not found.emits):
            return others
        return found

    @property
    def rounds(self) -> tuple[int, ...]:
        """How many rows of each sequence speculative rounds take, the fewest first."""
        return tuple(sorted({s.rows for s in self.shapes if s.is_round and s.rows is not None}))

    def told(self, program: str, reads: Callable[[str], Collection[str]]) -> bool:
        """Whether a program is told for how many it is called; else for all that it takes.

        `reads` says which vars a program reads.
        """
        return not {self.groups.name, self.rows.name}.isdisjoint(reads(program))

    def follow(
        self, shape: Shape, sequences: int, reads: Callable[[str], Collection[str]]
    ) -> tuple[Chain, ...]:
        """The chains that may go on from a call of so many sequences, the most alike first.

        `reads` says which vars a program reads. A chain that is told how many sequences it steps
        goes on from a call that was told, or of one sequence; another from as many as it steps.
        Rounds follow rounds of as many rows, and nothing else does.
        """
        count, rows = self.groups.name, shape.rows if shape.is_round else 1
        told = count in reads(shape.program)
        found: list[tuple[bool, int, Chain]] = []
        for chain in (each for each in self.chains if each.rows == rows):
            alike = told == (count in reads(chain.program))
            many = sequences if count in reads(chain.program) else chain.groups
            if shape.program in chain.seeds and many == sequences and (alike or sequences == 1):
                found.append((not alike, len(found), chain))
        return tuple(chain for _, _, chain in sorted(found, key=lambda entry: entry[:2]))

    @property
    def context(self) -> AxisVar | None:
        """The var that bounds every context, where some program declares one."""
        return next((s.context for s in self.shapes if s.context), None)

    @property
    def reach(self) -> int | None:
        """The most tokens a sequence may hold: what its tables can name and its context var."""
        limits = [table.tokens * table.pages for table in self.page_tables]
        limits += [self.context.max] if self.context else []
        return min(limits, default=None)

    def call_vars(
        self, rows: int, groups: int, *, longest: int, batch_rows: int | None = None
    ) -> dict[str, int]:
        """The vars of one call.

        Args:
            rows: Rows of this rank's call, all sequences together.
            groups: Sequences in the call.
            longest: Length in tokens of the longest of them once the call's rows are in.
            batch_rows: Rows of every member of the rank group; this rank is alone when None.

        Returns:
            The value of each var that a call takes.

        Raises:
            CallerError: a value lies outside what its var declares.
        """
        members = rows if batch_rows is None else batch_rows
        counted = (
            ("rows", self.rows, rows),
            ("groups", self.groups, groups),
            ("ranks", self.ranks, members),
            ("context", self.context, longest),
        )
        for axis, var, value in counted:
            if var is not None and not 1 <= value <= var.max:
                raise CallerError(f"`{var.name or axis}` is {value}, expected 1 to {var.max}")
        return {var.name: value for _, var, value in counted if var and var.name}


def check_protocol(verified: Verified, *, sampled: bool = True) -> list[Fault]:
    """Every reason why a serving loop cannot drive the manifest, in a stable order.

    `sampled` asks that tokens come out of the manifest; False when the caller samples itself. The
    stages of a cut ask for what their place in the pipeline carries.
    """
    reading = Reading.of(verified.manifest, sampled=sampled)
    return list(judge(PROTOCOL_ROWS, reading))


def protocol(verified: Verified, *, sampled: bool = True) -> Protocol:
    """Read what a serving loop may do with a manifest.

    Args:
        verified: The manifest.
        sampled: As in `check_protocol`.

    Returns:
        The protocol.

    Raises:
        ManifestError: it does not fit the protocol; the message lists every fault, one a line.
    """
    reading = Reading.of(verified.manifest, sampled=sampled)
    faults = list(judge(PROTOCOL_ROWS, reading))
    if faults:
        lines = "".join(f"\n  - {fault}" for fault in faults)
        raise ManifestError(
            f"manifest `{verified.manifest.model}` does not fit the serving protocol:{lines}"
        )
    return _read(reading)


def _read(reading: Reading) -> Protocol:
    manifest, programs = reading.manifest, sorted(reading.manifest.programs.items())
    roles = tuple(filled.role for filled in each_filled(reading) if filled.role)
    known = {role.buffer for role in roles} | table_states(manifest).keys()
    inputs = {name for name, buffer in manifest.buffers.items() if buffer.kind == "input"}
    arrives = _arrives(reading)
    pages, shapes = page_tables(manifest), shapes_of(reading)
    widest = max(shape.groups * (shape.rows or 1) for shape in shapes)
    return Protocol(
        rows=reading.axes.rows or AxisVar(None, widest),
        groups=reading.axes.groups or AxisVar(None, max(shape.groups for shape in shapes)),
        ranks=reading.axes.ranks,
        roles=roles,
        page_tables=pages,
        line_tables=line_tables(manifest, reading.axes),
        arrives=arrives,
        staged=tuple(sorted(inputs - known - set(arrives))),
        shapes=shapes,
        chains=chains_of(reading),
        once=tuple(name for name, program in programs if program.once),
        derive=tuple(name for name, program in programs if program.derive),
        page_tokens=_page_tokens(manifest, pages),
    )


def _arrives(reading: Reading) -> tuple[str, ...]:
    """What a stage after the first takes from the one before: exported, for that one to write."""
    if not reading.later_stage:
        return ()
    return tuple(
        name
        for name, buffer in sorted(reading.manifest.buffers.items())
        if buffer.kind in {"input", "inout"} and buffer.export
    )


def _page_tokens(manifest: Manifest, pages: tuple[PageTable, ...]) -> int | None:
    owned = [t.tokens for t in pages if manifest.states[t.state].bytes_per_token > 0]
    return lcm(*owned) if owned else None
