"""The prefix tree: against a plain list of prefixes, and the cases reported of such caches."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedstone.errors import CallerError
from bedstone.pool import Busy, Checkpoint, Geometry, HostRoom, Parked, Pool, PrefixTree
from pool_bytes import Memory

PAGED = Geometry(pages=500, unit=3, row=9)
BOTH = Geometry(pages=500, unit=3, row=9, slots=200)
ROOM = HostRoom(10**6, page_bytes=10, slot_bytes=10, grain=10)


def kept(pool: Pool, tokens) -> Checkpoint:
    lease = pool.lease(len(tokens))
    lease.advance(len(tokens))
    return lease.retire()


class Listed:
    """What a tree keeps, as a list looked through from end to end."""

    def __init__(self, geometry):
        self.geometry = geometry
        self.resident, self.parked = {}, {}  # the coldest first

    def usable(self, tokens, prompt):
        """How many tokens of a prompt a state is good for."""
        if prompt[: len(tokens)] == tokens:
            return len(tokens)
        pairs = zip(tokens, prompt, strict=False)
        shared = next((at for at, (one, two) in enumerate(pairs) if one != two), None)
        shared = min(len(tokens), len(prompt)) if shared is None else shared
        return 0 if self.geometry.per_sequence else shared // self.geometry.unit * 3

    def best(self, prompt):
        """How long the best state is, whether it is resident, and which ones are as good."""
        found = [
            (self.usable(tokens, prompt[:-1]), resident, tokens)
            for resident, held in ((True, self.resident), (False, self.parked))
            for tokens in held
        ]
        length, resident, _ = max(found, default=(0, True, ()))
        return length, resident, {each[2] for each in found if each[:2] == (length, resident)}

    def warm(self, tokens):
        """It was found: so were those on its way, the shortest last."""
        for length in range(len(tokens), 0, -1):
            for held in (self.resident, self.parked):
                if tokens[:length] in held:
                    held[tokens[:length]] = held.pop(tokens[:length])

    def replace(self, held, tokens):
        """One that is a page shorter at most, of whole pages, is of no more use."""
        shorter = [each for each in held if each != tokens and tokens[: len(each)] == each]
        longest = max(shorter, key=len, default=())
        near = longest and len(longest) % 3 == 0 and len(tokens) - len(longest) <= 3
        if near and not self.geometry.per_sequence:
            del held[longest]


TOKENS = st.lists(st.integers(0, 1), min_size=1, max_size=14).map(tuple)
CALLS = st.lists(st.tuples(st.sampled_from("iiillleeess"), TOKENS), max_size=50)


@settings(max_examples=300)
@given(st.sampled_from([PAGED, BOTH]), CALLS)
def test_a_tree_finds_and_gives_up_what_a_list_does(geometry, calls):
    pool = Pool(geometry, ROOM)
    tree, listed = PrefixTree(pool), Listed(geometry)
    for call, tokens in calls:
        if call == "i":
            checkpoint = kept(pool, tokens)
            tree.insert(tokens, checkpoint)
            assert checkpoint.is_open == (tokens not in listed.resident)
            if tokens not in listed.resident:
                listed.resident[tokens] = checkpoint
                listed.replace(listed.resident, tokens)
            listed.warm(tokens)
        elif call == "l":
            length, resident, as_good = listed.best(tokens)
            hit = tree.lookup(tokens)
            assert (hit.length if hit else 0) == length
            if hit:
                held = listed.resident if resident else listed.parked
                (found,) = [each for each in as_good if held[each] is hit.kept]
                listed.warm(found)
        elif call == "e":
            gone = tree.evict()
            assert (gone is None) == (not listed.resident)
            if gone:
                coldest = next(iter(listed.resident))
                assert gone.checkpoint is listed.resident.pop(coldest)
                assert gone.parked
                assert bool(gone.moves) == (coldest not in listed.parked)
                if gone.moves:
                    listed.parked[coldest] = tree._parked[next(reversed(tree._parked))]
                    listed.replace(listed.parked, coldest)
                gone.close()
        else:
            assert tree.shed() == bool(listed.parked)
            if listed.parked:
                del listed.parked[next(iter(listed.parked))]
        assert (tree.resident, tree.parked) == (len(listed.resident), len(listed.parked))
        require_tidy(tree._radix._root)
    tree.close()
    assert (pool.pages.free, pool.host_free) == (500, 10**6)
    assert not tree._radix._root.children


def require_tidy(root):
    """Every node is an end or a parting, and is found from above by each mark below it."""
    for first, node in root.children.items():
        assert (node.parent, node.edge[0], node.end) == (root, first, root.end + len(node.edge))
        assert node.marks or len(node.children) > 1
        require_tidy(node)
        for mark in (0, 1):
            assert (first in root.below[mark]) == node.has(mark)
    for below in root.below:
        assert all(root.children[first] is node for first, node in below.items())


@pytest.mark.parametrize(("length", "cached"), [(32, 16), (31, 16), (33, 32), (1, 0)])
def test_d03_the_last_token_of_a_prompt_always_runs(length, cached):
    geometry = Geometry(pages=20, unit=16, row=4)
    pool, memory = Pool(geometry), Memory(geometry, None)
    tree = PrefixTree(pool)
    prompt, answer = tuple(range(length)), tuple(range(100, 107))
    for turn in range(2):
        hit = tree.lookup(prompt)
        assert (hit.length if hit else 0) == (cached if turn else 0)
        start = hit.length if hit else 0
        lease = pool.lease(length + 7, hit and hit.kept, start or None)
        memory.make(lease.copies)
        assert lease.length == start < length
        memory.write(lease, prompt[:start], prompt[start:] + answer)
        memory.require(lease, prompt + answer)
        assert len(lease.pages) == geometry.pages_for(length + 7)
        tree.insert(prompt + answer, lease.retire())
    assert tree.resident == 1
    tree.close()
    assert pool.pages.free == 20


class Colliding(int):
    """A token of which every one has the same hash."""

    def __hash__(self):
        return 7


def test_d06_prompts_with_equal_hashes_share_nothing():
    tree = PrefixTree(pool := Pool(Geometry(pages=9, unit=16, row=4)))
    one = [Colliding(token) for token in range(32)]
    two = [Colliding(token) for token in range(50, 82)]
    parting = [*one[:17], *two[17:]]
    assert hash(tuple(one)) == hash(tuple(two))
    tree.insert(one, kept(pool, one))
    assert tree.lookup(two) is None
    assert tree.lookup([*one, 1]).length == 32
    assert tree.lookup(parting).length == 16


def test_a_longer_prefix_wins_and_then_the_one_on_the_device():
    tree = PrefixTree(pool := Pool(PAGED, ROOM))
    short, long = tuple(range(6)), tuple(range(15))
    tree.insert(long, kept(pool, long))
    tree.evict().close()
    tree.insert(short, kept(pool, short))
    assert isinstance(tree.lookup(long).kept, Parked)
    assert isinstance(tree.lookup(long[:7]).kept, Checkpoint)
    assert tree.lookup(long[:7]).length == 6


def test_a_state_with_a_slot_is_found_at_its_exact_length_only():
    tree = PrefixTree(pool := Pool(BOTH))
    tree.insert(range(9), kept(pool, range(9)))
    assert tree.lookup(range(9)) is None
    assert tree.lookup([*range(8), 20, 21]) is None
    assert tree.lookup([*range(9), 20]).length == 9


def test_a_growing_sequence_leaves_one_entry():
    tree = PrefixTree(pool := Pool(PAGED))
    lease = pool.lease(18)
    for length in range(3, 19, 3):
        lease.advance(3)
        tree.insert(range(length), lease.checkpoint())
    lease.close()
    assert (tree.resident, pool.pages.kept) == (1, 6)


def test_of_a_sequence_that_grew_the_host_keeps_one_too():
    tree = PrefixTree(pool := Pool(PAGED, ROOM))
    for length in (3, 6):
        tree.insert(range(length), kept(pool, range(length)))
        tree.evict().close()
    assert tree.parked == 1
    assert tree.lookup(range(9)).length == 6


def test_what_was_found_on_the_host_is_dropped_last():
    tree = PrefixTree(pool := Pool(PAGED, ROOM))
    for first in range(3):
        tree.insert([first] * 4, kept(pool, [first] * 4))
        tree.evict().close()
    assert tree.lookup([0] * 5).length == 4
    tree.shed()
    tree.shed()
    assert tree.lookup([0] * 5).length == 4


def test_what_no_longer_fits_on_the_host_displaces_the_coldest_there():
    tree = PrefixTree(pool := Pool(PAGED, HostRoom(60, page_bytes=10, grain=10)))
    for first in range(3):
        tokens = [first] * 9
        tree.insert(tokens, kept(pool, tokens))
        with_moves = tree.evict()
        assert with_moves.parked
        with_moves.close()
    assert tree.parked == 2
    assert tree.lookup([0] * 10) is None
    tree.insert([5] * 21, kept(pool, [5] * 21))
    gone = tree.evict()
    assert (gone.parked, bool(gone.moves), tree.parked) == (False, False, 2)
    gone.close()
    assert pool.pages.free == 500


def test_without_a_host_tier_the_coldest_is_dropped():
    tree = PrefixTree(pool := Pool(PAGED))
    for first in (1, 2):
        tree.insert([first] * 4, kept(pool, [first] * 4))
    assert tree.lookup([1] * 5).length == 4
    gone = tree.evict()
    assert not gone.parked
    gone.close()
    assert tree.lookup([2] * 5) is None
    assert tree.lookup([1] * 5).length == 4
    tree.evict().close()
    assert tree.evict() is None
    assert not tree.shed()
    assert pool.pages.free == 500


def test_what_a_sequence_uses_all_of_is_not_given_up():
    tree = PrefixTree(pool := Pool(PAGED, ROOM))
    lease = pool.lease(9)
    lease.advance(6)
    tree.insert([1] * 6, lease.checkpoint())
    assert tree.evict() is None
    tree.insert([2] * 6, kept(pool, [2] * 6))
    with tree.lookup([2] * 7).kept as other:
        assert tree.evict().checkpoint is other
    assert tree.evict() is None
    lease.close()
    assert tree.evict().parked


def test_a_shorter_one_with_pages_of_its_own_is_given_up_before_one_in_use():
    tree = PrefixTree(pool := Pool(PAGED))
    lease = pool.lease(12)
    lease.advance(9)
    tree.insert([1] * 9, lease.checkpoint())
    own = kept(pool, [1] * 3)
    tree.insert([1] * 3, own)
    assert tree.evict().checkpoint is own
    assert tree.evict() is None
    lease.close()


def test_nothing_is_given_up_where_that_cannot_help():
    tree = PrefixTree(pool := Pool(Geometry(pages=8, unit=3, row=8)))
    lease = pool.lease(12)
    tree.insert([2] * 6, kept(pool, [2] * 6))
    missing = pool.lease(21)
    assert missing == Busy(5, 0)
    assert tree.evict(missing) is None
    gone = tree.evict(pool.lease(12))
    gone.close()
    assert pool.lease(12).pages == (4, 5, 6, 7)
    assert pool.can_free(Busy(0, 0))
    assert not pool.can_free(Busy(1, 0))
    lease.close()


def test_a_checkpoint_goes_in_under_its_own_tokens_once():
    tree = PrefixTree(pool := Pool(PAGED))
    with pytest.raises(CallerError, match="a checkpoint of 4 tokens under 5"):
        tree.insert(range(5), kept(pool, range(4)))
    closed = kept(pool, range(4))
    closed.close()
    with pytest.raises(CallerError, match="used after it was given back"):
        tree.insert(range(4), closed)
    assert tree.lookup(range(9)) is None
