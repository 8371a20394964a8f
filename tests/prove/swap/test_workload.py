from bedstone.prove.swap.drive import limits
from bedstone.prove.swap.workload import lengths, workload
from bedstone.spec.codec import parse
from bedstone.verify import verify
from bedstone.verify.protocol import protocol


def planned(package, seed: int):
    verified = verify(parse((package / "manifest.json").read_bytes()))
    known = protocol(verified)
    return known, workload(known, limits(verified.manifest, known), seed)


def test_lengths_lie_on_the_edges_that_fit():
    assert lengths(32, 512, 1000) == (1, 31, 32, 33, 65, 511, 512, 513)
    assert lengths(32, 512, 54) == (1, 31, 32, 33)
    assert lengths(1, 4, 3) == (1, 2, 3)


def test_a_workload_is_a_function_of_its_seed(package):
    assert planned(package, 3)[1] == planned(package, 3)[1]
    assert planned(package, 3)[1] != planned(package, 4)[1]


def test_every_program_is_driven_and_no_page_is_shared(package):
    known, turns = planned(package, 1)
    driven = {turn.program for turn in turns}
    assert driven == {s.program for s in known.shapes} | {c.program for c in known.chains}
    leases = {lease for turn in turns for lease in turn.leases}
    pages = [page for lease in leases for page in lease.pages]
    assert len(pages) == len(set(pages))
    assert pages != sorted(pages)


def test_a_sequence_goes_on_where_it_was(package):
    _, turns = planned(package, 1)
    reached: dict[object, int] = {}
    for turn in turns:
        for lease in turn.leases:
            rows = next((len(f.tokens) for f in turn.feeds if f.lease == lease), 1)
            start = next((f.start for f in turn.feeds if f.lease == lease), reached.get(lease, 0))
            assert start == reached.get(lease, 0)
            reached[lease] = start + rows
    assert all(length <= lease.tokens for lease, length in reached.items())
