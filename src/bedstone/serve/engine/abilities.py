"""What a loaded package can do for an engine, read off its protocol."""

from collections.abc import Iterable, Mapping

from bedstone.errors import CallerError
from bedstone.runtime.choice import require_whole
from bedstone.runtime.domain import highest, longest
from bedstone.runtime.executor import Executor
from bedstone.runtime.rounds import DRAWN, rows_of_rounds
from bedstone.serve.requests import Request
from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import Fill
from bedstone.spec.sampling import Knobs
from bedstone.verify.protocol import Protocol, Shape

_DRAWN: Mapping[str, Fill] = {
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
}
_KNOBS = ("repetition", "presence", "frequency", "bias", "logprobs")
_PLAIN: Mapping[str, tuple[object, ...]] = {
    "temperature": (0, 0.0),
    "repetition": (1, 1.0),
    "presence": (0, 0.0),
    "frequency": (0, 0.0),
    "bias": ({},),
    "logprobs": (None,),
}
_DRAWN_PLAIN: Mapping[str, tuple[object, ...]] = {
    "top_k": (0, -1),
    "top_p": (1, 1.0),
    "min_p": (0, 0.0),
}


class Abilities(Frozen):
    """The calls an engine makes of a session.

    `feeders` take prompts, `rows` tokens of a sequence at a time at most and `call_rows` in all,
    the last token too where they hand one back (`feeds_all`). `steps` are the programs that take a
    row of each of several sequences, `rounds` those that take `stride` of each, 1 where there are
    none; narrow ones first of all these, and `sequences` the most of them at once.
    `told` are the programs that are told how many sequences they step; others are called with as
    many as they take. `context` is the longest sequence, `vocab` bounds its token ids. `missing`
    are the fields of a request that there is no input for.
    """

    protocol: Protocol
    knobs: Knobs | None
    feeders: tuple[Shape, ...]
    rows: int
    call_rows: int
    steps: tuple[Shape, ...]
    rounds: tuple[Shape, ...]
    stride: int
    sequences: int
    told: frozenset[str]
    context: int
    vocab: int
    missing: tuple[str, ...]
    most_edits: int = 0
    most_logprobs: int = 0

    @property
    def spelled_logprobs(self) -> str:
        """How many log-probabilities may be asked for, in words."""
        return f"0 to {self.most_logprobs}"

    @property
    def feeds_all(self) -> bool:
        """Whether the last token of a prompt goes in like the others, and one comes back."""
        return self.feeders[0].emits is not None

    @property
    def draws(self) -> bool:
        """Whether something is to be said of how each sequence's tokens are drawn."""
        drawn = any(role.fill in DRAWN for role in self.protocol.roles)
        return self.feeds_all and (drawn or self.knobs is not None)

    def step(self, sequences: int) -> Shape:
        """The program that takes a row of each of so many."""
        return next(shape for shape in self.steps if shape.groups >= sequences)

    def round(self, sequences: int) -> Shape:
        """The program that takes a round of each of so many."""
        return next(shape for shape in self.rounds if shape.groups >= sequences)

    def width(self, shape: Shape, sequences: int) -> int:
        """For how many sequences it is called to step so many: the others are padding."""
        return sequences if shape.program in self.told else shape.groups

    @property
    def pads(self) -> bool:
        """Whether some call has rows that belong to nobody."""
        stepping = (*self.steps, *self.rounds)
        return any(s.groups > 1 and s.program not in self.told for s in stepping)


def read_abilities(
    session: Executor, protocol: Protocol, knobs: Knobs | None, rows: int | None = None
) -> Abilities:
    """What a session can do; steps take `rows` of a sequence, by default as many as they can.

    Raises `CallerError`: no program takes a prompt, or none goes on from it and hands tokens back,
    one reads an input that nobody can fill, the tokens have no bound, or more than one rank runs.
    """
    require_whole(session.manifest)
    stride = rows_of_rounds(protocol, rows)
    steps = _steps(protocol)
    rounds = _narrow_first(s for s in protocol.shapes if s.is_round and s.rows == stride)
    feeders = _feeders(protocol) or steps
    if not steps and not rounds:
        raise CallerError("no program takes a row of a sequence and hands a token back")
    if not feeders:
        raise CallerError(
            "no program takes a prompt: neither one whose rows are set per call nor one of a row"
        )
    stepping = (*steps, *rounds)
    _require_filled(protocol, knobs, (*feeders, *stepping))
    return Abilities(
        protocol=protocol,
        knobs=knobs,
        feeders=feeders,
        rows=feeders[0].rows or protocol.rows.max,
        call_rows=protocol.rows.max,
        steps=steps,
        rounds=rounds,
        stride=stride,
        sequences=min(each[-1].groups for each in (steps, rounds) if each),
        told=_told(session, protocol),
        context=_context(session, protocol) - (stride - 1),
        vocab=_vocab(session, protocol),
        missing=_missing(protocol, steps or rounds, knobs if steps else None),
        most_edits=_width(session, None if knobs is None else knobs.edit_token),
        most_logprobs=_width(session, None if knobs is None else knobs.top_token),
    )


def lacks(abilities: Abilities, request: Request) -> str | None:
    """Which field of a request the package has no input for, or None."""
    sampling = request.sampling
    asked = [name for name, plain in _PLAIN.items() if getattr(sampling, name) not in plain]
    if sampling.temperature > 0:
        asked += [n for n, plain in _DRAWN_PLAIN.items() if getattr(sampling, n) not in plain]
    if request.constraint is not None:
        asked.append("constraint")
    return next((name for name in asked if name in abilities.missing), None)


def _steps(protocol: Protocol) -> tuple[Shape, ...]:
    """The programs that take a row of each sequence; such as take any number where none is."""
    found = _narrow_first(shape for shape in protocol.shapes if shape.is_step)
    return found or _narrow_first(s for s in protocol.shapes if s.rows is None and s.emits)


def _feeders(protocol: Protocol) -> tuple[Shape, ...]:
    """The programs that take any number of rows of a sequence, or of several as the first does."""
    found = _narrow_first(shape for shape in protocol.shapes if shape.rows is None)
    return tuple(s for s in found if (s.emits is None) == (found[0].emits is None))


def _narrow_first(shapes: Iterable[Shape]) -> tuple[Shape, ...]:
    return tuple(sorted(shapes, key=lambda shape: shape.groups))


def _missing(
    protocol: Protocol, stepping: tuple[Shape, ...], knobs: Knobs | None
) -> tuple[str, ...]:
    """The fields that a step of these programs has no input for."""
    read = {r.fill for r in protocol.roles if any(r.buffer in s.inputs for s in stepping)}
    drawn = [name for name, fill in _DRAWN.items() if fill not in read]
    return (*drawn, *(() if knobs else (*_KNOBS, "constraint")))


def _width(session: Executor, buffer: str | None) -> int:
    """Entries of a row of a buffer [groups, n]."""
    if buffer is None:
        return 0
    width = session.manifest.buffers[buffer].shape[-1]
    return width if isinstance(width, int) else session.manifest.vars[width].max


def _told(session: Executor, protocol: Protocol) -> frozenset[str]:
    """Those whose rows are set per call are told by where the rows of each sequence begin."""
    return frozenset(
        shape.program
        for shape in protocol.shapes
        if shape.rows is None or protocol.told(shape.program, session.reads)
    )


def _context(session: Executor, protocol: Protocol) -> int:
    capacity = session.capacity
    held = capacity.reach[0] if protocol.page_tables else None
    return longest(protocol, session.manifest, capacity, held)


def _vocab(session: Executor, protocol: Protocol) -> int:
    token = highest("token", protocol, session.manifest, session.capacity)
    if token is None:
        raise CallerError(
            "the tokens that go in have no bound: nothing says what the vocabulary is"
        )
    return token + 1


def _require_filled(protocol: Protocol, knobs: Knobs | None, shapes: tuple[Shape, ...]) -> None:
    known = set() if knobs is None else {getattr(knobs, name) for name in knobs.__struct_fields__}
    for shape in shapes:
        staged = sorted(set(shape.inputs) & (set(protocol.staged) - known))
        if staged:
            raise CallerError(
                f"program `{shape.program}` reads `{staged[0]}`, which only its caller can write"
            )
