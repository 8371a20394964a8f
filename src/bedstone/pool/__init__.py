"""What each sequence holds of the states: pure accounting that returns the copies to make."""

from bedstone.pool.checkpoint import Checkpoint
from bedstone.pool.chunks import Arena, Arenas
from bedstone.pool.copies import (
    Copies,
    Moves,
    PageCopy,
    PageMove,
    SlotClear,
    SlotCopy,
    SlotMove,
    merge,
)
from bedstone.pool.denial import Busy, Denial, ExceedsPool, ExceedsRow, HostFull, Remapping
from bedstone.pool.exchange import ChunkMove, Remap
from bedstone.pool.geometry import Geometry
from bedstone.pool.host import HostRoom
from bedstone.pool.lease import Lease
from bedstone.pool.parked import Parked, Waking
from bedstone.pool.pool import Pool
from bedstone.pool.prefix import Evicted, Hit, PrefixTree
from bedstone.pool.stock import Tally

__all__ = [
    "Arena",
    "Arenas",
    "Busy",
    "Checkpoint",
    "ChunkMove",
    "Copies",
    "Denial",
    "Evicted",
    "ExceedsPool",
    "ExceedsRow",
    "Geometry",
    "Hit",
    "HostFull",
    "HostRoom",
    "Lease",
    "Moves",
    "PageCopy",
    "PageMove",
    "Parked",
    "Pool",
    "PrefixTree",
    "Remap",
    "Remapping",
    "SlotClear",
    "SlotCopy",
    "SlotMove",
    "Tally",
    "Waking",
    "merge",
]
