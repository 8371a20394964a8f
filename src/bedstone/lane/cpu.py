"""The CPU lane's shim: a launch exists if the library has its kernel and the sizes suit it."""

from dataclasses import dataclass

from bedstone.lane.entries import entry, followed
from bedstone.lane.launch import (
    Attending,
    Attention,
    ExpertGlu,
    ExpertProduct,
    ExpertSum,
    FlatAttention,
    HeadProduct,
    Launch,
    Parts,
    Route,
    Sequences,
)
from bedstone.lane.schedule import GEMV_ROWS, QBLOCK
from bedstone.lane.touch import places_of, reads_of
from bedstone.library.catalog import KernelSet

MOST_EXPERTS = 1024
"""The experts whose scores, or rows, a kernel holds at once."""

MOST_WIDTHS = 48000
"""What 16 keys and one query's values and results may take of an attention's scratch: values."""

FOURS = 4
"""A score is four sums, of every fourth product each: no query is cut between."""


@dataclass(frozen=True, slots=True)
class CpuShim:
    """Answers from a set of kernels."""

    kernels: KernelSet

    def lacks(self, launch: Launch) -> str | None:
        """Why no CPU kernel runs `launch`."""
        if isinstance(launch, Sequences):
            return self.lacks(launch.whole)
        return _unfit(launch) or missing(launch, self.kernels)


def missing(launch: Launch, kernels: KernelSet) -> str | None:
    """What the kernels of a set cannot do of a launch: follow its parts, or all of it."""
    able, name = followed(launch), entry(launch)
    for read in reads_of(launch):
        if read.window is not None and read not in able:
            return f"`{read.tensor}` is a part, which `{name}` cannot follow"
    return None if kernels.get(name) else f"no kernel `{name}`"


def _unfit(launch: Launch) -> str | None:
    """What a kernel's sizes do not suit; one that quantizes its result makes whole blocks."""
    experts = experts_of(launch)
    if experts > MOST_EXPERTS:
        return f"{experts} experts are more than {MOST_EXPERTS}"
    if isinstance(launch, Parts) and launch.rows > GEMV_ROWS:
        return f"{launch.rows} rows are no GEMV, which takes {GEMV_ROWS}"
    why = _unattended(launch) if isinstance(launch, Attending) else None
    if why is not None:
        return why
    if any(place.quant for place in places_of(launch)):
        cut = next((owned for owned in _owned(launch) if owned % QBLOCK), None)
        return None if cut is None else f"{cut} values are no whole blocks of {QBLOCK}"
    return None


def _unattended(launch: Attention | FlatAttention) -> str | None:
    if launch.splits > 1:
        return f"the span is attended whole, not in {launch.splits} pieces"
    if 17 * (launch.dk + 32) + 2 * launch.dv > MOST_WIDTHS:
        return f"keys {launch.dk} and values {launch.dv} wide do not fit its scratch"
    if _own(launch) % FOURS:
        return f"the first {_own(launch)} values of a query are no fours"
    return None


def _own(launch: Attention | FlatAttention) -> int:
    """The values of a query that lie apart from its others; 0 where none do."""
    part = launch.split if isinstance(launch, Attention) else launch.tail
    return 0 if part is None else part.own


def experts_of(launch: Launch) -> int:
    """The experts a launch chooses among, or the matrices it is given."""
    match launch:
        case Route(routing=routing):
            return routing.experts
        case ExpertProduct(m=m) | ExpertSum(m=m) | ExpertGlu(gate=m):
            return m.count
        case _:
            return 0


def _owned(launch: Launch) -> tuple[int, ...]:
    """The values of a result that one block of a kernel makes, where that is not a whole row."""
    match launch:
        case Attending(heads=heads, groups=groups, dv=dv):
            return (heads // groups * dv,)
        case HeadProduct(m=m):
            return (m.n,)
        case ExpertGlu(gate=gate, shared=shared):
            return (gate.n,) if shared is None else (gate.n, shared.gate.n)
        case _:
            return ()
