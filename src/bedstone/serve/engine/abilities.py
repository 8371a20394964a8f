"""What a loaded package can do for an engine, read off its protocol."""

from collections.abc import Mapping

from bedstone.errors import CallerError
from bedstone.runtime.domain import highest, longest
from bedstone.runtime.executor import Executor
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

    `chunk` takes prompts, `rows` tokens at a time at most; `steps` are the programs that take a row
    of each of several sequences, narrow ones first, and `sequences` the most of them at once.
    `told` are the programs that are told how many sequences they step; others are called with as
    many as they take. `context` is the longest sequence, `vocab` bounds its token ids. `missing`
    are the fields of a request that there is no input for.
    """

    protocol: Protocol
    knobs: Knobs | None
    chunk: Shape
    rows: int
    steps: tuple[Shape, ...]
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

    def step(self, sequences: int) -> Shape:
        """The program that takes a row of each of so many."""
        return next(shape for shape in self.steps if shape.groups >= sequences)

    def width(self, shape: Shape, sequences: int) -> int:
        """For how many sequences it is called to step so many: the others are padding."""
        return sequences if shape.program in self.told else shape.groups

    @property
    def pads(self) -> bool:
        """Whether some call has rows that belong to nobody."""
        return any(s.groups > 1 and s.program not in self.told for s in self.steps)


def read_abilities(session: Executor, protocol: Protocol, knobs: Knobs | None) -> Abilities:
    """What a session can do.

    Raises `CallerError`: no program takes a row of a sequence and hands a token back, one reads an
    input that nobody can fill, or the tokens have no bound.
    """
    steps = sorted((s for s in protocol.shapes if s.rows == 1), key=lambda shape: shape.groups)
    if not steps or any(shape.emits is None for shape in steps):
        raise CallerError("no program takes a row of a sequence and hands a token back")
    chunk = protocol.chunk or steps[0]
    _require_filled(protocol, knobs, (chunk, *steps))
    return Abilities(
        protocol=protocol,
        knobs=knobs,
        chunk=chunk,
        rows=chunk.rows or protocol.rows.max,
        steps=tuple(steps),
        sequences=steps[-1].groups,
        told=_told(session, protocol),
        context=_context(session, protocol),
        vocab=_vocab(session, protocol),
        missing=_missing(protocol, knobs),
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


def _missing(protocol: Protocol, knobs: Knobs | None) -> tuple[str, ...]:
    drawn = [name for name, fill in _DRAWN.items() if protocol.role(fill) is None]
    return (*drawn, *(() if knobs else (*_KNOBS, "constraint")))


def _width(session: Executor, buffer: str | None) -> int:
    """Entries of a row of a buffer [groups, n]."""
    if buffer is None:
        return 0
    width = session.manifest.buffers[buffer].shape[-1]
    return width if isinstance(width, int) else session.manifest.vars[width].max


def _told(session: Executor, protocol: Protocol) -> frozenset[str]:
    counts = {protocol.groups.name, protocol.rows.name} - {None}
    programs = [shape.program for shape in protocol.shapes if shape.rows == 1]
    return frozenset(name for name in programs if counts & set(session.reads(name)))


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
