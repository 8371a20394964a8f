"""What may be asked of an engine whose package has a small sampler: each bound from both sides."""

from dataclasses import replace

import pytest

from bedstone.errors import CallerError
from bedstone.serve.engine.abilities import Abilities, read_abilities
from bedstone.serve.engine.intake import require_possible
from bedstone.serve.requests import Request, Sampling
from bedstone.verify.protocol import protocol

EDITS, LOGPROBS = 8, 3


@pytest.fixture
def able(session) -> Abilities:
    opened = session()
    found = read_abilities(opened, protocol(opened.verified), None)
    return replace(found, missing=(), most_edits=EDITS, most_logprobs=LOGPROBS)


@pytest.mark.parametrize(
    ("prompt", "sampling", "touched"),
    [
        ([1, 2, 3], Sampling(presence=0.5), 0),
        ([1, 2, 3], Sampling(frequency=-0.5), 0),
        ([1, 2, 1], Sampling(repetition=1.5), 2),
        ([1, 2, 3], Sampling(bias={5: 1.0, 6: -1.0, 1: 2.0}), 3),
        ([1, 2, 1], Sampling(repetition=1.5, bias={2: 1.0, 3: 1.0}), 3),
    ],
)
def test_as_many_logits_are_edited_as_there_is_room_for(able, prompt, sampling, touched):
    """Those of the biases, of the prompt where that counts, and of each token that may come."""
    left = EDITS - touched
    require_possible(able, Request("a", prompt, left, sampling=sampling))
    with pytest.raises(CallerError, match=f"edit {EDITS + 1} tokens, the package has room for 8"):
        require_possible(able, Request("a", prompt, left + 1, sampling=sampling))
    # there are no more logits than tokens
    small = replace(able, vocab=EDITS)
    require_possible(small, Request("a", prompt, left + 1, sampling=sampling))


def test_what_changes_nothing_may_be_asked_where_there_is_no_input_for_it(able):
    lacking = replace(able, missing=("top_k", "min_p"))
    for sampling in (Sampling(1.0, top_k=-1, min_p=0.0), Sampling(0.0, top_k=5, min_p=0.5)):
        require_possible(lacking, Request("a", [1], 1, sampling=sampling))
    with pytest.raises(CallerError, match="`top_k` needs a sampler"):
        require_possible(lacking, Request("a", [1], 1, sampling=Sampling(1.0, top_k=5)))


def test_who_edits_nothing_needs_no_room(able):
    for sampling in (Sampling(), Sampling(1.0, top_k=5, logprobs=2)):
        require_possible(able, Request("a", [1, 2, 3], 40, sampling=sampling))


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(0.0, top_k=-1, top_p=0.0, min_p=0.0, logprobs=0),
        Sampling(1e9, top_k=2**31, top_p=1.0, min_p=1.0, logprobs=LOGPROBS),
        Sampling(presence=-9.0, frequency=9.0, repetition=1e-9, bias={0: -100.0, 96: 100.0}),
    ],
)
def test_the_ends_of_what_may_be_asked(able, sampling):
    require_possible(able, Request("a", [1], 1, sampling=sampling))


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -1e-9},
        {"temperature": float("inf")},
        {"top_k": -2},
        {"top_p": -1e-9},
        {"top_p": 1 + 1e-9},
        {"top_p": float("nan")},
        {"min_p": -1e-9},
        {"min_p": 1 + 1e-9},
        {"repetition": 0.0},
        {"repetition": float("inf")},
        {"presence": float("nan")},
        {"frequency": float("-inf")},
        {"logprobs": -1},
        {"logprobs": LOGPROBS + 1},
        {"bias": {97: 1.0}},
        {"bias": {-1: 1.0}},
        {"bias": {3: float("nan")}},
    ],
    ids=str,
)
def test_what_lies_beyond_is_refused_by_its_name(able, wrong):
    (name,) = wrong
    with pytest.raises(CallerError, match=f"request `a`: `{name}.* expected"):
        require_possible(able, Request("a", [1], 1, sampling=Sampling(**wrong)))
