"""How much memory each region takes, and where buffers lie in their arena. Pure.

Buffers and scratch have the size of their vars' maxima. States are *fixed*, *paged* (bytes a token
times the tokens reserved) or *per sequence* (bytes a slot times the slots reserved); slot 0 is the
null line that padding points at and is never leased.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from bedstone.errors import CapacityError
from bedstone.runtime.device import BUFFER_ALIGN
from bedstone.spec.dtype import DTYPE_BYTES, DType
from bedstone.spec.manifest import Dim, Manifest, State

KeyT = TypeVar("KeyT")

_HEADROOM = 2**30
_SPARE_SLOTS = 2


@dataclass(frozen=True, slots=True)
class PageTable:
    """An input whose entries are page numbers of a paged state.

    `row_tokens` is the longest sequence one row of it can describe.
    """

    buffer: str
    state: str
    page: int
    row_tokens: int


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the pooled states hold: `tokens` is a whole number of units of `unit` tokens.

    `notes` says where this is not what was asked for.
    """

    tokens: int
    slots: int
    unit: int
    notes: tuple[str, ...] = ()


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
    manifest: Manifest, tokens: int | None, sequences: int, free_bytes: int
) -> Capacity:
    """The tokens and slots to reserve; without `tokens`, what `sequences` full rows can hold.

    Raises `CapacityError`: not one page fits.
    """
    if sequences < 1:
        raise CapacityError(f"`sequences` is {sequences}: expected 1 at least")
    tables = page_tables(manifest)
    unit = math.lcm(*(table.page for table in tables))
    slots = sequences + _SPARE_SLOTS
    a_token = sum(state.bytes_per_token for state in manifest.states.values())
    if not a_token:
        return Capacity(0, slots, unit)
    if tokens is not None:
        return _rounded(tokens, slots, unit, ())
    wanted = sequences * min((table.row_tokens for table in tables), default=unit)
    a_slot = sum(state.bytes_per_seq for state in manifest.states.values())
    room = free_bytes - min(_HEADROOM, free_bytes // 4) - a_slot * slots
    held = max(0, min(wanted, room // a_token))
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


def plan_arena(sizes: Mapping[KeyT, int]) -> tuple[dict[KeyT, int], int]:
    """Where each region starts in one arena, on `BUFFER_ALIGN` boundaries, and the arena's size."""
    offsets: dict[KeyT, int] = {}
    end = 0
    for region, nbytes in sizes.items():
        offsets[region] = end
        end += -(-nbytes // BUFFER_ALIGN) * BUFFER_ALIGN
    return offsets, end
