"""Weights cut into pieces, read by threads, and where every byte of them arrives."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedstone.errors import WeightError
from bedstone.runtime.cuda import upload as uploading
from bedstone.runtime.cuda.upload import Uploader, plan_pieces
from bedstone.runtime.device import Stored, Upload
from cuda_fake import Driver, words

DATA = np.random.default_rng(1).integers(0, 256, 5000, np.uint8)


@st.composite
def uploads(draw):
    rows, width = draw(st.integers(0, 9)), draw(st.integers(0, 60))
    pitch = width + draw(st.integers(0, 40))
    return Upload(
        Stored(DATA), draw(st.integers(0, 100)), pitch, 7, width + draw(st.integers(0, 20)), rows,
        width,
    )  # fmt: skip


def arrived(pieces, size):
    """Bytes at their places, and how often each place was written."""
    target, times = np.zeros(size, np.uint8), np.zeros(size, int)
    for piece in pieces:
        span = DATA[piece.source : piece.source + piece.span]
        for row in range(piece.rows):
            data = span[row * piece.source_pitch :][: piece.width]
            assert data.size == piece.width
            at = piece.address + row * piece.target_pitch
            target[at : at + piece.width] = data
            times[at : at + piece.width] += 1
    return target, times


@given(uploads(), st.integers(1, 300))
def test_pieces_fit_a_block_and_carry_every_byte_once(upload, block):
    pieces = list(plan_pieces([upload], block))
    assert all(piece.span <= block for piece in pieces)
    whole = replace(upload, rows=upload.rows)
    expected, once = np.zeros(2000, np.uint8), np.zeros(2000, int)
    for row in range(whole.rows):
        at = whole.address + row * whole.target_pitch
        source = whole.source + row * whole.source_pitch
        expected[at : at + whole.width] = DATA[source : source + whole.width]
        once[at : at + whole.width] = 1
    target, times = arrived(pieces, 2000)
    assert np.array_equal(target, expected)
    assert np.array_equal(times, once)


@settings(max_examples=25)
@given(st.lists(uploads(), max_size=5), st.integers(1, 4), st.booleans())
def test_uploads_arrive_however_many_read(several, readers, filed):
    import tempfile
    from pathlib import Path
    from unittest.mock import patch

    driver = Driver()
    address = driver.alloc(5 * 2000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "weights")
        path.write_bytes(bytes(11) + DATA.tobytes())
        stored = Stored(DATA, (path, 11)) if filed else Stored(DATA)
        placed = [
            replace(upload, stored=stored, address=address + 2000 * index)
            for index, upload in enumerate(several)
        ]
        told = []
        with patch.object(uploading, "BLOCK_BYTES", 64):
            Uploader(driver, readers).run(placed, told.append)
    pieces = plan_pieces([replace(u, address=u.address - address) for u in placed], 64)
    target, times = arrived(pieces, 5 * 2000)
    found = words(address, 5 * 2000, np.uint8)
    assert np.array_equal(found[times > 0], target[times > 0])
    assert told == sorted(told)
    assert told[-1:] in ([], [sum(upload.nbytes for upload in several)])
    assert driver.leaks() == {address}


def test_a_file_shorter_than_its_header_said(tmp_path):
    path = tmp_path / "weights"
    path.write_bytes(DATA[:1000].tobytes())
    driver = Driver()
    upload = Upload(Stored(DATA, (path, 0)), 0, 5000, driver.alloc(5000), 5000, 1, 5000)
    with pytest.raises(WeightError, match=r"`.*weights` ends 4000 bytes before a tensor does"):
        Uploader(driver, 2).run([upload], lambda _: None)
    assert driver.leaks() == {upload.address}


def test_a_file_that_is_gone(tmp_path):
    driver = Driver()
    stored = Stored(DATA, (tmp_path / "gone", 0))
    upload = Upload(stored, 0, 10, driver.alloc(10), 10, 1, 10)
    with pytest.raises(WeightError, match=r"`.*gone` cannot be read: No such file"):
        Uploader(driver, 1).run([upload], lambda _: None)


def test_one_reader_that_fails_stops_the_others(tmp_path):
    driver = Driver()
    stored = Stored(DATA, (tmp_path / "gone", 0))
    many = [Upload(stored, 0, 10, driver.alloc(10), 10, 1, 10) for _ in range(500)]
    told = []
    with pytest.raises(WeightError):
        Uploader(driver, 4).run(many, told.append)
    assert not told or told[-1] == 0
