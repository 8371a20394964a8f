"""What the device holds of each row, whatever was set, moved and lent before."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedstone.runtime.device import Places
from bedstone.runtime.inputs import table_inputs
from bedstone.runtime.lease import Lease
from bedstone.serve.engine.kept import (
    Changed,
    Entries,
    Fronts,
    Lines,
    Pages,
)
from bedstone.verify.protocol import LineTable, PageTable

ROWS = 5


class Device:
    """An input, and what was written of it."""

    def __init__(self, *shape: int) -> None:
        self.values = np.zeros(shape, np.int32)
        self.held = np.zeros(shape, np.int32)

    def write(self, rows: int, first: int = 0) -> None:
        assert 0 <= first <= first + rows <= len(self.values)
        self.held[first : first + rows] = self.values[first : first + rows]

    copy = write

    def require_between(self, low: int, high: int) -> None:
        assert low <= high

    def require_inside(self, values: np.ndarray) -> None:
        assert values.size

    def write_elements(self, first: int, count: int) -> None:
        assert 0 <= first <= first + count <= self.values.size
        self.held.reshape(-1)[first : first + count] = self.values.reshape(-1)[first:][:count]

    def put_places(self, places: Places, values: np.ndarray) -> None:
        self.values.reshape(-1)[places.flat] = self.held.reshape(-1)[places.flat] = values


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["set", "move", "lend", "flush", "put"]),
        st.integers(0, ROWS - 1),
        st.integers(0, ROWS - 1),
        st.integers(1, 99),
    ),
    max_size=30,
)


WIDE = PageTable("t", "s", 4, 3)


@pytest.mark.parametrize("wide", [False, True])
@given(acts=ACTS)
def test_entries(wide, acts):
    shape = (ROWS, WIDE.pages) if wide else (ROWS,)
    device, changed = Device(*shape), Changed()
    device.held[:] = -1
    kept = Pages(device, changed, WIDE, WIDE.tokens) if wide else Entries(device, changed)
    expected = np.zeros(shape, int)
    for act, row, other, value in acts:
        told = (value, value + 1, value + 2) if wide else value % 3
        if act == "set":
            kept.set(row, told)
            expected[row] = told
        elif act == "move":
            kept.move(other, row)
            expected[row] = expected[other]
        elif act == "lend":
            kept.lend(told)
            assert np.array_equal(device.held[0], told)
        elif act == "flush":
            changed.flush(other)
            assert np.array_equal(device.held[:other], expected[:other])
    changed.flush(ROWS)
    assert np.array_equal(device.held, expected)


@given(ACTS)
def test_fronts(acts):
    device, changed = Device(ROWS, 9), Changed()
    kept, expected = Fronts(device, changed), [[] for _ in range(ROWS)]

    def require_held(rows):
        changed.flush(rows)
        for row, front in enumerate(expected[:rows]):
            assert device.held[row, : len(front)].tolist() == front

    for act, row, other, value in acts:
        front = list(range(value, value + value % 9))
        if act == "set":
            kept.set(row, np.array(front, np.int32))
            expected[row] = front
        elif act == "move":
            kept.move(other, row)
            expected[row] = list(expected[other])
        elif act == "lend":
            kept.lend(np.array(front, np.int32))
            assert device.held[0, : len(front)].tolist() == front
        elif act == "put" and len(expected[row]) < 9:
            at = value % (len(expected[row]) + 1)
            kept.put(Places(np.array([row * 9 + at]), row, row, at, at), np.array([value]))
            expected[row][at : at + 1] = [value]
            kept.use(np.array([row]), [len(expected[row])])
        elif act == "flush":
            require_held(other)
    require_held(ROWS)


TABLES = [
    LineTable("t", "s", 8, 1, 1, "groups"),
    LineTable("t", "s", 8, 4, 2, "groups", 3),
    LineTable("t", "s", 8, 3, 3, None),
]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table.lines}x{table.width}")
@given(acts=ACTS)
def test_lines_are_those_that_one_caller_writes(table, acts):
    columns = ROWS if table.over else 1
    device = Device(*[table.lines, columns, table.width][: 1 if table.over is None else 3])
    changed = Changed()
    kept, slots = Lines(device, changed, table), [0] * columns
    axis = SimpleNamespace(max=columns)
    protocol = SimpleNamespace(page_tables=(), line_tables=(table,), groups=axis, ranks=None)

    def require_held(slots):
        leases = [Lease((), 1, slot) for slot in slots]
        ((_, entries),) = table_inputs(protocol, *leases)
        assert device.held.reshape(-1).tolist() == entries.reshape(-1).tolist()

    for act, one, two, value in acts:
        row, other = one % columns, two % columns
        if act == "set":
            kept.set(row, value)
            slots[row] = value
        elif act == "move":
            kept.move(other, row)
            slots[row] = slots[other]
        elif act == "lend":
            kept.lend(value)
            require_held([value, *slots[1:]])
        elif act == "flush":
            changed.flush(ROWS)
            require_held(slots)


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=6, unique=True),
    st.sampled_from([(4, 4), (8, 4), (12, 4)]),
    st.integers(1, 24),
)
def test_a_row_of_a_table_is_that_which_one_caller_writes(pages, sizes, width):
    unit, tokens = sizes
    table = PageTable("t", "s", tokens, width)
    device, changed = Device(ROWS, width), Changed()
    Pages(device, changed, table, unit).set(1, tuple(pages))
    changed.flush(ROWS)
    assert device.held[1].tolist() == Lease(tuple(pages), unit).page_entries(table)


@given(
    st.lists(st.integers(0, 50), min_size=2, max_size=6, unique=True),
    st.sampled_from([(4, 4), (8, 4), (12, 4)]),
    st.integers(1, 24),
    st.data(),
)
def test_a_row_that_grows_is_the_row_of_all_its_pages(pages, sizes, width, data):
    unit, tokens = sizes
    table = PageTable("t", "s", tokens, width)
    had = data.draw(st.integers(1, len(pages) - 1))
    device, changed = Device(ROWS, width), Changed()
    entries = Pages(device, changed, table, unit)
    entries.set(2, tuple(pages[:had]))
    entries.grow(np.full(len(pages) - had, 2), np.arange(had, len(pages)), np.array(pages[had:]))
    changed.flush(ROWS)
    assert device.held[2].tolist() == Lease(tuple(pages), unit).page_entries(table)


def test_what_did_not_change_is_not_written_again():
    table = PageTable("t", "s", 4, 1)
    kinds = ((Entries, 7), (Fronts, np.array([7])), (lambda *to: Pages(*to, table, 4), (7,)))
    for kind, told in kinds:
        device, changed = Device(ROWS, 1) if kind is not Entries else Device(ROWS), Changed()
        kind(device, changed).set(3, told)
        changed.flush(2)
        changed.flush(ROWS)
        assert device.held[3] == 7
        device.held[:] = 0
        changed.flush(ROWS)
        assert not device.held.any()
