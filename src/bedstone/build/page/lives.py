"""Where each buffer of a step lies in the arena, and from which launch to which it lives."""

from collections.abc import Iterator
from dataclasses import dataclass

from bedstone.lane.launch import Form
from bedstone.lane.schedule import Buffer, Schedule, Slot
from bedstone.lane.touch import touches

_Home = tuple[str, Form]


@dataclass(frozen=True, slots=True)
class Life:
    """A slot of the arena that holds a piece of a tensor, and the launches that touch it there.

    It lives from launch `first` to launch `last`, an output to the end of the step.
    """

    buffer: Buffer
    piece: str
    slot: Slot
    first: int
    last: int
    readers: tuple[int, ...]
    writers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Users:
    readers: list[int]
    writers: list[int]


def lives(schedule: Schedule) -> tuple[Life, ...]:
    """The life of every slot, by offset."""
    found = [
        _life(schedule, home, users, piece, slot)
        for home, users in _users(schedule).items()
        for piece, slot in _slots(schedule.buffers[home[0]], home[1])
    ]
    return tuple(sorted(found, key=lambda life: (life.slot.offset, life.first)))


def _life(schedule: Schedule, home: _Home, users: _Users, piece: str, slot: Slot) -> Life:
    tensor, form = home
    touched = [*users.readers, *users.writers]
    last = max(touched)
    if (tensor, form) in {_home(schedule, output, "f32") for output in schedule.outputs}:
        last = len(schedule.steps) - 1
    readers, writers = tuple(users.readers), tuple(users.writers)
    return Life(schedule.buffers[tensor], piece, slot, min(touched), last, readers, writers)


def _users(schedule: Schedule) -> dict[_Home, _Users]:
    """The launches that read and write each form that lies in the arena."""
    found: dict[_Home, _Users] = {}
    for at, step in enumerate(schedule.steps):
        for touch in touches(step.launch):
            home = _home(schedule, touch.tensor, touch.form)
            if home is not None:
                users = found.setdefault(home, _Users([], []))
                (users.writers if touch.write else users.readers).append(at)
    return found


def _home(schedule: Schedule, tensor: str, form: Form) -> _Home | None:
    """The tensor in whose slots a form lies; None outside the arena."""
    buffer = schedule.buffers.get(tensor)
    if buffer is None:
        return None
    own = buffer.quant if form == "quant" else buffer.f32
    return (buffer.view_of if own is None and buffer.view_of is not None else tensor), form


def _slots(buffer: Buffer, form: Form) -> Iterator[tuple[str, Slot]]:
    if form == "f32" and buffer.f32 is not None:
        yield buffer.dtype, buffer.f32
    if form == "quant" and buffer.quant is not None:
        yield from buffer.quant.pieces()
