"""The host tier: where parked pages and slots lie, and which of the device are the same."""

from collections.abc import Iterable, Sequence

from bedstone.errors import CallerError
from bedstone.pool.denial import HostFull
from bedstone.pool.ranges import Ranges
from bedstone.spec.frozen import Frozen


class HostRoom(Frozen):
    """One block of `nbytes` on the host.

    A page takes `page_bytes` in all paged states together, a slot `slot_bytes` in all per-sequence
    ones; each starts on a multiple of `grain`.

    Raises `CallerError`: a number is out of range.
    """

    nbytes: int
    page_bytes: int = 0
    slot_bytes: int = 0
    grain: int = 2**16

    def __post_init__(self) -> None:
        if min(self.nbytes, self.page_bytes, self.slot_bytes) < 0 or self.grain < 1:
            raise CallerError(f"{self}: expected no negative sizes and a grain of 1 at least")

    @property
    def page_stride(self) -> int:
        """Bytes from a page to the next of a run."""
        return max(1, -(-self.page_bytes // self.grain)) * self.grain

    @property
    def slot_stride(self) -> int:
        """Bytes from a slot to the next of a run."""
        return max(1, -(-self.slot_bytes // self.grain)) * self.grain


class Twins:
    """Pieces of the device and of the host with the same content.

    A link is no user: neither end keeps the other.
    """

    def __init__(self) -> None:
        self._offsets: dict[int, int] = {}
        self._numbers: dict[int, dict[int, None]] = {}

    def offset(self, number: int) -> int | None:
        """Where the host has what the device has as `number`."""
        return self._offsets.get(number)

    def number(self, offset: int) -> int | None:
        """One of the device that is what the host has at `offset`."""
        return next(iter(self._numbers.get(offset, ())), None)

    def link(self, number: int, offset: int) -> None:
        """They are the same; a number that has a twin keeps it."""
        if number not in self._offsets:
            self._offsets[number] = offset
            self._numbers.setdefault(offset, {})[number] = None

    def forget_numbers(self, numbers: Iterable[int]) -> None:
        """These of the device are free, or will be written."""
        for number in numbers:
            offset = self._offsets.pop(number, None)
            if offset is not None:
                del self._numbers[offset][number]

    def forget_offset(self, offset: int) -> None:
        """The host has it no longer."""
        for number in self._numbers.pop(offset, ()):
            del self._offsets[number]


class Place(Frozen):
    """Where pages and a slot lie on the host; `slot` None: there is none."""

    pages: tuple[int, ...] = ()
    slot: int | None = None


class Host:
    """What is parked, each piece with a count of its users."""

    def __init__(self, room: HostRoom) -> None:
        self.room = room
        self.pages = Twins()
        self.slots = Twins()
        self._ranges = Ranges(room.nbytes // room.grain * room.grain)
        self._users: dict[int, int] = {}

    @property
    def free(self) -> int:
        """Bytes that nothing takes."""
        return self._ranges.free

    def take(self, pages: int, slots: int) -> Place | HostFull:
        """A place for so many, with one user: pages from the low end, a slot from the high."""
        low = self._ranges.take_low(self.room.page_stride, pages)
        high = self._ranges.take_high(self.room.slot_stride) if slots and low is not None else None
        if low is None or (slots and high is None):
            for offset in low or ():
                self._ranges.give(offset, self.room.page_stride)
            needed = pages * self.room.page_stride + slots * self.room.slot_stride
            return HostFull(needed, self.room.nbytes)
        place = Place(low, high)
        self.add(place)
        return place

    def add(self, place: Place) -> None:
        """One user more for all of it."""
        for offset in _offsets(place):
            self._users[offset] = self._users.get(offset, 0) + 1

    def drop(self, place: Place) -> None:
        """One user less for all of it; what has none is free."""
        for offset in self._unused(place.pages):
            self.pages.forget_offset(offset)
            self._ranges.give(offset, self.room.page_stride)
        for offset in self._unused(() if place.slot is None else (place.slot,)):
            self.slots.forget_offset(offset)
            self._ranges.give(offset, self.room.slot_stride)

    def _unused(self, offsets: Sequence[int]) -> list[int]:
        for offset in offsets:
            self._users[offset] -= 1
        unused = [offset for offset in offsets if not self._users[offset]]
        for offset in unused:
            del self._users[offset]
        return unused


def _offsets(place: Place) -> tuple[int, ...]:
    return place.pages if place.slot is None else (*place.pages, place.slot)
