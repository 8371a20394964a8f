import os
from contextlib import closing

import numpy as np
import pytest

from bedstone.errors import CapacityError
from bedstone.prove.swap.image import BLOCK, Blocks
from bedstone.prove.swap.reel import Reel
from bedstone.runtime.lower import Region

STATE, BUFFER = Region("state", "k.0"), Region("buffer", "work")


@pytest.fixture
def reel():
    with closing(Reel()) as held:
        yield held


def blocks(*at: int) -> Blocks:
    """Blocks at these indices, the first of which is poison."""
    data = np.full((len(at) - 1, BLOCK), at[-1], np.uint8)
    return Blocks(np.array(at, np.int32), data)


def test_changes_come_back_in_any_order(reel):
    kept = [reel.put({STATE: blocks(3, 1, 2), BUFFER: blocks(0)}), reel.put({STATE: blocks(9, 8)})]
    late, early = reel.get(kept[1]), reel.get(kept[0])
    assert early[STATE].at.tolist() == [3, 1, 2]
    assert early[BUFFER].data.shape == (0, BLOCK)
    assert late[STATE].data.tolist() == [[8] * BLOCK]
    assert sum(piece.nbytes for pieces in kept for piece in pieces) == 6 * 4 + 3 * BLOCK
    assert reel.get(reel.put({})) == {}


def test_what_a_child_keeps_its_parent_reads(reel):
    pieces = reel.put({STATE: blocks(1, 2)})
    end, child = os.pipe(), os.fork()
    if child == 0:
        later = reel.put({BUFFER: blocks(5, 6)})
        os.write(end[1], str(later[0].start).encode())
        os._exit(0)
    os.waitpid(child, 0)
    start = int(os.read(end[0], 99))
    (piece,) = pieces
    assert start == piece.nbytes
    moved = type(piece)(BUFFER, start, 2, 1)
    assert reel.get([moved])[BUFFER].data.tolist() == [[6] * BLOCK]


def test_a_full_disk_says_what_to_do(reel, monkeypatch):

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(CapacityError, match="has no room for the record"):
        reel.put({STATE: blocks(1, 2)})


def test_a_record_that_was_cut_off_is_no_record(reel):
    (piece,) = reel.put({STATE: blocks(1, 2)})
    with pytest.raises(CapacityError, match="ends at byte"):
        reel.get([type(piece)(STATE, piece.start, 200, 1)])
