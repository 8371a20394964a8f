"""How much memory each region takes, and where buffers lie in their arena. Pure.

Buffers and scratch have the size of their vars' maxima. States are *fixed*, *paged* (bytes a token
times the tokens reserved) or *per sequence* (bytes a slot times the slots reserved); slot 0 is the
null line that padding points at and is never leased. Where a device maps memory under addresses,
paged and per-sequence states take it from one budget of *chunks* of one size, so that a chunk can
go from one to another.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from bedstone.errors import CapacityError
from bedstone.runtime.device import StateNeed
from bedstone.spec.dtype import DTYPE_BYTES, DType
from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import Dim, Manifest, State

KeyT = TypeVar("KeyT")

BUFFER_ALIGN = 256
"""Every buffer and scratch the runtime allocates starts on a multiple of this many bytes. A weight
used in place lies where its file has it: aligned to its element type only."""

_HEADROOM = 2**30
_SPARE_SLOTS = 2
_FEWEST_SLOTS = 2
"""The null line and the slot of one sequence."""

_MOST_CHUNK = 64 * 2**20


class PageTable(Frozen):
    """An input whose entries are page numbers of a paged state.

    `row_tokens` is the longest sequence one row of it can describe.
    """

    buffer: str
    state: str
    page: int
    row_tokens: int


class Exchange(Frozen):
    """Memory goes from paged states to per-sequence ones and back, `chunk` bytes at a time.

    `tokens` and `slots` are the most that either can have then, of the other what one needs.
    """

    chunk: int
    tokens: int
    slots: int


class Capacity(Frozen):
    """What the pooled states hold: `tokens` is a whole number of units of `unit` tokens.

    `notes` says where this is not what was asked for. With an `exchange` it is what they hold until
    memory goes from one to another.
    """

    tokens: int
    slots: int
    unit: int
    notes: tuple[str, ...] = ()
    exchange: Exchange | None = None

    @property
    def reach(self) -> tuple[int, int]:
        """The tokens and the slots that there can ever be."""
        exchange = self.exchange
        return (exchange.tokens, exchange.slots) if exchange else (self.tokens, self.slots)


def extents(shape: tuple[Dim, ...], upper: Mapping[str, int]) -> tuple[int, ...]:
    """A shape with every var at its maximum."""
    return tuple(dim if isinstance(dim, int) else upper[dim] for dim in shape)


def array_bytes(dtype: DType, shape: tuple[Dim, ...], upper: Mapping[str, int]) -> int:
    """Bytes of an array with every var at its maximum."""
    return math.prod(extents(shape, upper)) * DTYPE_BYTES[dtype]


def upper_bounds(manifest: Manifest) -> dict[str, int]:
    """Every var at its maximum."""
    return {name: var.max for name, var in manifest.vars.items()}


def page_tables(manifest: Manifest) -> tuple[PageTable, ...]:
    """The inputs that carry no fill and index a paged state, in name order."""
    upper = upper_bounds(manifest)
    found: list[PageTable] = []
    for name, buffer in sorted(manifest.buffers.items()):
        domain = buffer.domain
        if buffer.kind != "input" or buffer.fill is not None or domain is None:
            continue
        state = manifest.states.get(domain.index_into or "")
        if state is not None and state.bytes_per_token:
            width = extents(buffer.shape, upper)[-1]
            found.append(
                PageTable(name, domain.index_into or "", domain.stride, width * domain.stride)
            )
    return tuple(found)


def plan_capacity(
    manifest: Manifest, tokens: int | None, sequences: int, free_bytes: int, granule: int = 1
) -> Capacity:
    """The tokens and slots to reserve; without `tokens`, what `sequences` full rows can hold.

    `granule` is what the device's memory comes in multiples of.

    Raises `CapacityError`: not one page fits.
    """
    if sequences < 1:
        raise CapacityError(f"`sequences` is {sequences}: expected 1 at least")
    tables = page_tables(manifest)
    unit = math.lcm(*(table.page for table in tables))
    slots = sequences + _SPARE_SLOTS
    if not any(state.bytes_per_token for state in manifest.states.values()):
        return Capacity(0, slots, unit)
    if tokens is not None:
        return _rounded(tokens, slots, unit, ())
    wanted = sequences * min((table.row_tokens for table in tables), default=unit)
    room = free_bytes - min(_HEADROOM, free_bytes // 4)

    def taken(held: int) -> int:
        needs = state_needs(manifest, Capacity(held, slots, unit))
        return mapped_bytes(needs.values(), granule)

    held = max(0, bisect_right(range(wanted + 1), room, key=taken) - 1)
    notes = (f"memory holds {held} tokens of the {wanted} the page tables reach",)
    return _rounded(held, slots, unit, notes if held < wanted else ())


def _rounded(tokens: int, slots: int, unit: int, notes: tuple[str, ...]) -> Capacity:
    whole = tokens // unit * unit
    if whole < unit:
        raise CapacityError(
            f"the paged states have room for {tokens} tokens: expected one page of {unit} at least"
        )
    if whole < tokens:
        notes = (*notes, f"{tokens} tokens are rounded down to {whole}, whole pages of {unit}")
    return Capacity(whole, slots, unit, notes)


def state_bytes(state: State, capacity: Capacity) -> int:
    """Bytes to reserve for a state of the runtime's own."""
    return (
        state.bytes + state.bytes_per_token * capacity.tokens + state.bytes_per_seq * capacity.slots
    )


def state_needs(manifest: Manifest, capacity: Capacity) -> dict[str, StateNeed]:
    """Each state of the runtime's own, with what is leased of it at a time."""
    return {
        name: StateNeed(
            state_bytes(state, capacity),
            state.bytes_per_token * capacity.unit or state.bytes_per_seq,
            capacity.slots > _SPARE_SLOTS + 1,
        )
        for name, state in sorted(manifest.states.items())
    }


def plan_chunk(needs: Iterable[StateNeed], granule: int) -> int:
    """Bytes of a chunk: a multiple of `granule`, at most half of the least that is leased at once.

    Where that is less than two granules chunks are large instead, since each costs a fixed time to
    map; but no larger than the smallest pooled state.
    """
    if granule == 1:
        return 1
    pooled = [need for need in needs if need.unit]
    unit = min((need.unit for need in pooled), default=0)
    whole = min((rounded_up(need.nbytes, granule) for need in pooled), default=granule)
    most = unit // 2 if unit >= 2 * granule else _MOST_CHUNK
    return max(granule, min(most, _MOST_CHUNK, whole) // granule * granule)


def mapped_bytes(needs: Iterable[StateNeed], granule: int) -> int:
    """Memory that states take, each rounded up to whole chunks or, if of fixed size, granules."""
    held = tuple(needs)
    chunk = plan_chunk(held, granule)
    return sum(rounded_up(need.nbytes, chunk if need.unit else granule) for need in held)


def plan_exchange(manifest: Manifest, capacity: Capacity, chunk: int) -> Exchange | None:
    """How far paged and per-sequence states can grow at each other's cost.

    None: there is one kind only, or nothing that one could give up.
    """
    needs = state_needs(manifest, capacity)
    pooled = [state for name, state in manifest.states.items() if needs[name].unit]
    paged = [state.bytes_per_token for state in pooled if state.bytes_per_token]
    own = [state.bytes_per_seq for state in pooled if state.bytes_per_seq]
    if not (paged and own):
        return None
    budget = sum(rounded_up(need.nbytes, chunk) for need in needs.values() if need.unit)

    def most(of: Sequence[int], step: int, beside: Sequence[int], least: int) -> int:
        room = budget - _in_chunks(beside, least, chunk)
        every = range(budget // (sum(of) * step) + 2)
        return step * (bisect_right(every, room, key=lambda n: _in_chunks(of, n * step, chunk)) - 1)

    tokens = max(capacity.tokens, most(paged, capacity.unit, own, _FEWEST_SLOTS))
    slots = max(capacity.slots, most(own, 1, paged, capacity.unit))
    grows = (tokens, slots) != (capacity.tokens, capacity.slots)
    return Exchange(chunk, tokens, slots) if grows else None


def _in_chunks(sizes: Sequence[int], count: int, chunk: int) -> int:
    """Bytes of the chunks that `count` objects take in states with such bytes for each."""
    return sum(rounded_up(count * each, chunk) for each in sizes)


def runs(addresses: Iterable[int], nbytes: int) -> list[tuple[int, int]]:
    """Where pieces of `nbytes` at some addresses start and end, neighbours as one."""
    found: list[tuple[int, int]] = []
    for address in sorted(addresses):
        if found and found[-1][1] == address:
            found[-1] = found[-1][0], address + nbytes
        else:
            found.append((address, address + nbytes))
    return found


def rounded_up(nbytes: int, multiple: int) -> int:
    """The least multiple that holds `nbytes`."""
    return -(-nbytes // multiple) * multiple


def plan_arena(sizes: Mapping[KeyT, int]) -> tuple[dict[KeyT, int], int]:
    """Where each region starts in one arena, on `BUFFER_ALIGN` boundaries, and the arena's size."""
    offsets: dict[KeyT, int] = {}
    end = 0
    for region, nbytes in sizes.items():
        offsets[region] = end
        end += rounded_up(nbytes, BUFFER_ALIGN)
    return offsets, end
