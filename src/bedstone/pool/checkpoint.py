"""The frozen state of a sequence at one exact length."""

from bedstone.errors import CallerError
from bedstone.pool.geometry import Geometry
from bedstone.pool.store import Piece, Resident


class Checkpoint(Resident):
    """`length` tokens of a sequence, which nothing writes any more.

    `copies` are to be made before the next step; then it is what it says.
    """

    __slots__ = ()

    @property
    def piece(self) -> Piece:
        """Its pages and its slot."""
        self.require_open()
        return self._piece

    @property
    def in_use(self) -> bool:
        """Whether leases have all of it, so that closing it would free nothing."""
        pages = self.pages
        return bool(pages) and not self.slot and all(map(self._store.pages.leased, pages[::-1]))

    def resign(self) -> Piece:
        """Its pages and its slot, which whoever calls holds from now on."""
        self.require_open()
        self._open = False
        return self._piece

    def _give_back(self) -> None:
        self._store.drop(self._piece, leased=False)


def require_reusable(geometry: Geometry, length: int, held: int) -> None:
    """Raise unless state held at `held` tokens can be gone on with from `length`.

    Raises `CallerError`: it is not the exact length, nor one of whole pages where that will do.
    """
    if not geometry.reusable(length, held):
        others = "" if geometry.per_sequence else f", or fewer in whole pages of {geometry.unit}"
        raise CallerError(f"{length} tokens of a state of {held}: expected {held}{others}")
