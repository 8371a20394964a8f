"""Which prefixes are kept: found by their tokens, given up coldest first."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from bedstone.errors import CallerError
from bedstone.pool.checkpoint import Checkpoint
from bedstone.pool.copies import NO_MOVES, Moves
from bedstone.pool.denial import Busy
from bedstone.pool.parked import Parked
from bedstone.pool.pool import Pool
from bedstone.pool.radix import Mark, Node, Radix
from bedstone.spec.frozen import Frozen


class Hit(Frozen):
    """The first `length` tokens of a prompt are those of what is kept, which the tree owns."""

    length: int
    kept: Checkpoint | Parked


class Evicted(Frozen):
    """What the tree gave up: `parked` once `moves` are made, else dropped.

    Close it then, and what no one else uses of it is free.
    """

    checkpoint: Checkpoint
    moves: Moves
    parked: bool

    def close(self) -> None:
        """Give its pages and its slot back."""
        self.checkpoint.close()


class PrefixTree:
    """Checkpoints and what is parked of them, by the tokens they are the state of.

    Tokens are compared, never hashes of them. Of each path there is one of either at most. The
    coldest is the one that was inserted, parked or found longest ago; what is found warms those on
    its way as well, the shortest most. Each call costs what its tokens and the nodes on their way
    do, whatever else is kept.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._geometry = pool.geometry
        self._radix = Radix()
        self._resident: OrderedDict[Node, Checkpoint] = OrderedDict()
        self._parked: OrderedDict[Node, Parked] = OrderedDict()

    @property
    def resident(self) -> int:
        """How many checkpoints it has."""
        return len(self._resident)

    @property
    def parked(self) -> int:
        """How many it has on the host; some of them may be resident as well."""
        return len(self._parked)

    def lookup(self, tokens: Sequence[int]) -> Hit | None:
        """The longest of what is kept that a prompt can go on from.

        Its last token is never among those: it must run, for there are no logits else. Of equally
        long ones a resident one is better than a parked one.
        """
        prompt = tuple(tokens[:-1])
        best: tuple[int, Mark, Node] | None = None
        for node, shared in self._radix.walk(prompt):
            for mark in Mark:  # what is resident first: of equal lengths the first stays
                length = self._usable(node, shared, mark)
                if length > (best[0] if best else 0):
                    best = (length, mark, node)
        if best is None:
            return None
        length, mark, node = best
        found = node.nearest(mark)
        self._warm(found)
        kept = self._resident[found] if mark is Mark.RESIDENT else self._parked[found]
        return Hit(length, kept)

    def insert(self, tokens: Sequence[int], checkpoint: Checkpoint) -> None:
        """Keep a checkpoint, the state of `tokens`, as the tree's own.

        It is closed if there is one of these tokens already. Without slots one takes the place of
        the one of whole pages next above it, if that is a page shorter at most.

        Raises `CallerError`: it is not the state of as many tokens, or was given back.
        """
        checkpoint.require_open()
        if len(tokens) != checkpoint.length:
            raise CallerError(
                f"a checkpoint of {checkpoint.length} tokens under {len(tokens)}: expected as many"
            )
        node = self._radix.put(tuple(tokens))
        if node in self._resident:
            checkpoint.close()
        else:
            self._resident[node] = checkpoint
            self._radix.mark(node, Mark.RESIDENT)
            self._replace_shorter(node, Mark.RESIDENT)
        self._warm(node)

    def evict(self, missing: Busy | None = None) -> Evicted | None:
        """Give up the coldest checkpoint of which something is free then.

        It is parked, what is coldest of the parked dropped until it fits, or else dropped. None:
        leases have all that there is, or it could not make up for what a denial says is `missing`.
        """
        helps = missing is None or self._pool.can_free(missing)
        node = self._coldest() if helps else None
        if node is None:
            return None
        moves = NO_MOVES
        if node not in self._parked and (parked := self._park(self._resident[node])):
            moves = parked.moves
            self._parked[node] = parked
            self._radix.mark(node, Mark.PARKED)
            self._replace_shorter(node, Mark.PARKED)
        checkpoint = self._resident.pop(node)
        self._radix.unmark(node, Mark.RESIDENT)
        return Evicted(checkpoint, moves, node in self._parked)

    def shed(self) -> bool:
        """Drop the coldest of what is parked; False: nothing is."""
        if not self._parked:
            return False
        self._drop(next(iter(self._parked)), Mark.PARKED)
        return True

    def close(self) -> None:
        """Drop everything."""
        while self.shed():
            pass
        while self._resident:
            self._drop(next(iter(self._resident)), Mark.RESIDENT)

    def _usable(self, node: Node, shared: int, mark: Mark) -> int:
        """How many of the tokens shared with a node what has the mark there is good for."""
        if shared == node.end and mark in node.marks:
            return shared
        if self._geometry.per_sequence or not node.has(mark):
            return 0
        return self._geometry.whole(shared)

    def _coldest(self) -> Node | None:
        for _ in range(len(self._resident)):
            node, checkpoint = next(iter(self._resident.items()))
            if not checkpoint.in_use:
                return node
            self._resident.move_to_end(node)
        return None

    def _park(self, checkpoint: Checkpoint) -> Parked | None:
        while not isinstance(parked := self._pool.park(checkpoint), Parked):
            if parked.nbytes > parked.total or not self.shed():
                return None
        return parked

    def _warm(self, node: Node) -> None:
        for each in self._upwards(node):
            if each in self._resident:
                self._resident.move_to_end(each)
            if each in self._parked:
                self._parked.move_to_end(each)

    def _replace_shorter(self, node: Node, mark: Mark) -> None:
        if self._geometry.per_sequence:
            return
        shorter = next((each for each in node.above() if mark in each.marks), None)
        if (
            shorter is not None
            and self._geometry.whole(shorter.end) == shorter.end
            and node.end - shorter.end <= self._geometry.unit
        ):
            self._drop(shorter, mark)

    def _drop(self, node: Node, mark: Mark) -> None:
        kept = self._resident.pop(node) if mark is Mark.RESIDENT else self._parked.pop(node)
        kept.close()
        self._radix.unmark(node, mark)

    @staticmethod
    def _upwards(node: Node) -> Iterator[Node]:
        yield node
        yield from node.above()
