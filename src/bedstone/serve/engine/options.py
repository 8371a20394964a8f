"""How an engine serves."""

from bedstone.errors import CallerError
from bedstone.serve.engine.schedule import Admission
from bedstone.spec.frozen import Frozen


class Options(Frozen):
    """How an engine serves.

    A step takes `rows` of a sequence: those of the widest speculative round, or 1 for none.
    `sequences` at once at most (None: as many as a step takes) and `queue` more that wait. A prompt
    goes in `chunk` tokens a call at most, and no more than `budget` between two steps of those that
    are being answered: the more, the longer those wait; the fewer, the more often weights are read.
    `admission` "needed" lets in what has room to begin and makes the youngest give way when pages
    run out; "worst" reserves all that a request may need.
    `reuse` keeps prefixes, with `host_bytes` of host memory for those that are in the way.
    """

    sequences: int | None = None
    queue: int = 256
    chunk: int = 128
    budget: int = 64
    admission: Admission = "needed"
    reuse: bool = True
    host_bytes: int = 0
    rows: int | None = None

    def __post_init__(self) -> None:
        least = {"sequences": 1, "queue": 0, "chunk": 1, "budget": 1, "host_bytes": 0, "rows": 1}
        for name, low in least.items():
            value = getattr(self, name)
            if value is not None and value < low:
                raise CallerError(f"`{name}` is {value}: expected {low} at least")


DEFAULTS = Options()
