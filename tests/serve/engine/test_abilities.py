"""Which manifests that fit the protocol an engine drives, and what it says of the others."""

import json
from types import SimpleNamespace

import pytest

from bedstone.errors import CallerError, ManifestError
from bedstone.runtime.memory import Capacity
from bedstone.serve.engine.abilities import read_abilities
from bedstone.spec.codec import parse_value
from bedstone.verify import verify
from bedstone.verify.protocol import protocol
from calls_toy import SHAPES, Calls, calls_manifest
from conformance_cases import ACCEPTED, accepted_text
from serving_manifests import PAGED, PEERS, RECURRENT, SPECULATIVE, changed

BOUND = ("add", "/buffers/ids/domain", {"min": 0, "max": 99})
NO_BOUND = "the tokens that go in have no bound: nothing says what the vocabulary is"
STAGE = "is stage {} of 2 of a cut: tokens go in at the first and come out at the last"


def abilities(verified, rows=None):
    """What an engine would do with a manifest whose programs are told all vars."""
    session = SimpleNamespace(
        manifest=verified.manifest,
        verified=verified,
        capacity=Capacity(tokens=4096, slots=10, unit=1),
        reads=lambda _: verified.manifest.vars,
    )
    return read_abilities(session, protocol(verified), None, rows)


REFUSED = {
    PAGED: NO_BOUND,
    RECURRENT: NO_BOUND,
    SPECULATIVE: NO_BOUND,
    "16_uncut": NO_BOUND,
    PEERS: "runs on the 4 ranks of group `ep` at once: nothing drives more than one",
    "08_shards": "runs on the 4 ranks of group `tp` at once",
    "17_cut_stage0": STAGE.format(0),
    "18_cut_stage1": STAGE.format(1),
}
DRIVEN = {
    PAGED: (("prefill",), ("decode", "decode_many"), ()),
    RECURRENT: (("prefill",), ("decode", "decode_many"), ()),
    SPECULATIVE: (("prefill",), ("decode", "decode_many"), ("round",)),
    "16_uncut": (("prefill",), ("decode",), ()),
}


def served(name):
    """Whether an accepted manifest fits the protocol."""
    try:
        return protocol(verify(parse_value(json.loads(accepted_text(name)))))
    except ManifestError:
        return None


def test_every_manifest_that_fits_the_protocol_is_looked_at():
    assert {name for name in ACCEPTED if served(name)} == REFUSED.keys()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(name):
    with pytest.raises(CallerError) as refused:
        abilities(changed(name))
    assert REFUSED[name] in str(refused.value)


@pytest.mark.parametrize("name", DRIVEN)
def test_with_tokens_bounded_all_programs_are_driven(name):
    found = abilities(changed(name, BOUND))
    driven = [[s.program for s in some] for some in (found.feeders, found.steps, found.rounds)]
    assert tuple(map(tuple, driven)) == DRIVEN[name]
    assert found.vocab == 100


def test_a_round_takes_room_past_the_end():
    manifest = changed(SPECULATIVE, BOUND)
    plain, rounds = abilities(manifest, 1), abilities(manifest)
    assert (plain.stride, rounds.stride) == (1, 4)
    assert rounds.context == plain.context - 3
    with pytest.raises(CallerError, match="expected 1, or those of a round; there are 4"):
        abilities(manifest, 2)


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_of_call_is_driven(name):
    calls = SHAPES[name]
    found = abilities(verify(calls_manifest("0" * 64, calls)))
    assert [s.groups for s in found.rounds] == list(calls.rounds)
    widths = [each[-1] for each in (calls.steps, calls.rounds) if each] or [calls.prompts]
    assert found.sequences == min(widths)
    assert found.context == calls.page * calls.width - (calls.rows - 1 if calls.rounds else 0)


def test_programs_that_are_missing_are_named():
    rounds = verify(calls_manifest("0" * 64, Calls(steps=(), rounds=(4,), chunk=0)))
    with pytest.raises(CallerError, match="no program takes a prompt: neither one whose rows"):
        abilities(rounds)
    two = [("replace", f"/programs/{p}/batch/rows", 2) for p in ("decode", "decode_many")]
    with pytest.raises(CallerError, match="no program takes a row of a sequence and hands a token"):
        abilities(changed(PAGED, BOUND, *two))


def test_an_input_that_nobody_fills_is_named():
    loose = changed(PAGED, BOUND, ("remove", "/buffers/pos/fill"))
    with pytest.raises(CallerError, match="reads `pos`, which only its caller can write"):
        abilities(loose)
