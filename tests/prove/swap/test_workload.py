from bedstone.prove.swap.drive import limits
from bedstone.prove.swap.lengths import far_ends, far_start, prompt_lengths
from bedstone.prove.swap.workload import capacity, workload
from bedstone.spec.codec import parse
from bedstone.verify import verify
from bedstone.verify.protocol import protocol

CONTEXT = 4200
TILES = (63, 64, 65, 127, 128, 129)


def planned(package, seed: int):
    verified = verify(parse((package / "manifest.json").read_bytes()))
    known = protocol(verified)
    return known, workload(known, limits(verified.manifest, known), seed)


def spans_of(turns):
    """Where each sequence of each call starts and ends: (program, start, end)."""
    reached: dict[object, int] = {}
    for turn in turns:
        for lease in turn.leases:
            feed = next((feed for feed in turn.feeds if feed.lease == lease), None)
            start = feed.start if feed else reached[lease]
            reached[lease] = start + (len(feed.tokens) if feed else 1)
            yield turn.program, start, reached[lease]


def test_prompts_lie_on_the_edges_that_fit():
    assert prompt_lengths(32, 512, 1000) == (1, 31, 32, 33, *TILES, 513)
    assert prompt_lengths(32, 512, 54) == (1, 31, 32, 33)
    assert prompt_lengths(16, 64, 8192) == (1, 15, 16, 17, 33, *TILES)
    assert prompt_lengths(1, 4, 3) == (1, 2, 3)


def test_long_sequences_end_past_4096_and_at_the_end_of_the_context():
    assert far_ends(32, 8192) == (4097, 8192)
    assert far_ends(32, 4096) == (4096,)
    assert far_ends(32, 31) == ()
    assert far_start(32, 4097) == 4064
    assert far_start(16, 8192) == 8176


def test_a_workload_is_a_function_of_its_seed(package):
    assert planned(package, 3)[1] == planned(package, 3)[1]
    assert planned(package, 3)[1] != planned(package, 4)[1]


def test_only_tokens_and_pages_depend_on_the_seed(package):
    told = [[(t.program, t.rows, t.longest) for t in planned(package, s)[1]] for s in (3, 4)]
    assert told[0] == told[1]


def test_every_program_is_driven_past_4096_and_up_to_the_end(package):
    known, turns = planned(package, 1)
    programs = {s.program for s in known.shapes} | {c.program for c in known.chains}
    found = list(spans_of(turns))
    assert {program for program, _, end in found if end == 4097} == programs
    assert {program for program, _, end in found if end == CONTEXT} == programs
    assert max(end for _, _, end in found) == CONTEXT
    assert ("prefill", 4064, 4097) in found


def test_every_edge_of_a_page_and_of_a_tile_is_a_prompt_and_a_step(package):
    _, turns = planned(package, 1)
    found = set(spans_of(turns))
    edges = (1, 31, 32, 33, *TILES)
    assert {("prefill", 0, edge) for edge in edges} <= found
    assert {("decode", edge, edge + 1) for edge in edges} <= found


def test_a_step_of_several_has_the_longest_in_every_place(package):
    known, turns = planned(package, 1)
    firsts = {
        count: {
            max(range(count), key=lambda at: turn.feeds[at].start)
            for turn in turns
            if turn.program == "decode_many" and len(turn.feeds) == count
        }
        for count in (2, known.groups.max)
    }
    assert firsts == {2: {0, 1}, 3: {0, 1, 2}}


def test_own_pages_are_shuffled_and_nobody_elses_and_lent_ones_are_full(package):
    _, turns = planned(package, 1)
    leases = {lease.slot: lease for turn in turns for lease in turn.leases}
    lengths: dict[int, int] = {}
    own: list[int] = []
    for lease in (leases[slot] for slot in sorted(leases)):
        first = next(f for t in turns for f in t.feeds if f.lease == lease)
        mine = lease.pages[first.start // lease.unit :]
        if not first.start:
            lengths |= {page: at for at, page in enumerate(mine[: len(first.tokens) // lease.unit])}
        else:
            lent = lease.pages[: first.start // lease.unit]
            assert set(lent) <= set(lengths)
            assert len(set(lent)) > 3
        own += mine
    assert len(own) == len(set(own)) == max(own) + 1
    assert own != sorted(own)


def test_there_is_room_for_the_workload(package):
    verified = verify(parse((package / "manifest.json").read_bytes()))
    known, turns = planned(package, 1)
    tokens, sequences = capacity(known, limits(verified.manifest, known))
    pages = {page for turn in turns for lease in turn.leases for page in lease.pages}
    assert tokens == (max(pages) + 1) * (known.page_tokens or 1)
    assert sequences == len({lease.slot for turn in turns for lease in turn.leases})


def test_a_sequence_never_reads_what_nobody_wrote(package):
    _, turns = planned(package, 1)
    written: dict[object, int] = {}
    for turn in turns:
        for lease in turn.leases:
            feed = next((feed for feed in turn.feeds if feed.lease == lease), None)
            start = feed.start if feed else written[lease]
            known = written.get(lease, start if start % lease.unit == 0 else -1)
            assert start <= known
            end = start + (len(feed.tokens) if feed else 1)
            written[lease] = end if feed is None else max(known, end)
        assert all(end <= lease.tokens for lease, end in written.items())
