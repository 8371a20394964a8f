"""What reaches the engine of how tokens are drawn: seeds, usual values, bounds."""

import hashlib

import pytest

from bedstone.serve.http.sampling import seed_of
from bedstone.serve.http.usual import Usual, own_settings
from bedstone.serve.requests import Limits
from bedstone.spec.target import Behavior, Policy, Preset
from bedstone.spec.target import Sampling as Presets
from fronts import CHAT, saying
from scripted import letters

PATH = "/v1/completions"


def uniform(request):
    """Every token equally likely, drawn by the seed and the position alone."""
    position = len(request.tokens)
    while True:
        text = f"{request.sampling.seed} {position}".encode()
        yield hashlib.sha256(text).digest()[0]
        position += 1


def drawn(front, **fields):
    choices = front.complete([0], temperature=1, max_tokens=16, return_token_ids=True, **fields)
    return [tuple(choice["token_ids"]) for choice in choices["choices"]]


def asked(front, **fields):
    """How the engine was asked to draw."""
    front.complete([0], max_tokens=1, **fields)
    return front.engine.seen[-1].sampling


def test_g08_choices_differ_and_repeat(fronted):
    front = fronted(letters([]), uniform)
    first = drawn(front, n=4, seed=7)
    assert len(set(first)) == 4
    assert drawn(front, n=4, seed=7) == first
    assert drawn(front, seed=7) == first[:1]
    # the same seed of several prompts is each prompt's own
    several = front.complete([[0], [1]], temperature=1, n=2, seed=7, max_tokens=1)
    seeds = [request.sampling.seed for request in front.engine.seen[-4:]]
    assert seeds == [7, seed_of(7, 1)] * 2
    assert len(several["choices"]) == 4


def test_g09_without_a_seed_answers_differ_and_zero_is_a_seed(fronted):
    front = fronted(letters([]), uniform)
    assert len({drawn(front)[0] for _ in range(3)}) == 3
    assert len({drawn(front, seed=0)[0] for _ in range(3)}) == 1
    assert front.engine.seen[-1].sampling.seed == 0


def test_seeds_of_choices_never_meet():
    seeds = {seed_of(seed, choice) for seed in range(64) for choice in range(1, 64)}
    assert len(seeds) == 64 * 63
    assert not seeds & set(range(64))
    assert seed_of(2**64 - 1, 0) == 2**64 - 1


def test_seeds_of_choices_are_splitmix64_as_published():
    """Whoever asked with a seed gets the same choices from any release."""
    numbers = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert [seed_of(0, choice) for choice in (1, 2, 3)] == numbers


def test_negative_seeds_are_seeds(fronted):
    assert asked(fronted(), seed=-1).seed == 2**64 - 1


@pytest.mark.parametrize(("given", "kept"), [(0, 0), (-1, 0), (4, 4), (None, 0)])
def test_g29_top_k_zero_and_minus_one_keep_all(fronted, given, kept):
    assert asked(fronted(), top_k=given).top_k == kept


def test_g29_top_p_zero_is_one_token(fronted):
    assert asked(fronted(), top_p=0).top_p == 0
    assert asked(fronted()).top_p == 1


def test_every_field_arrives(fronted):
    sampling = asked(
        fronted(), temperature=0.5, top_k=3, top_p=0.9, min_p=0.1, presence_penalty=0.5,
        frequency_penalty=-0.5, repetition_penalty=1.5, logit_bias={"3": -100, "4": 1.5},
        logprobs=2, seed=1,
    )  # fmt: skip
    assert (sampling.temperature, sampling.top_k, sampling.top_p) == (0.5, 3, 0.9)
    assert (sampling.min_p, sampling.presence, sampling.frequency) == (0.1, 0.5, -0.5)
    assert (sampling.repetition, sampling.logprobs, sampling.seed) == (1.5, 2, 1)
    assert sampling.bias == {3: -100, 4: 1.5}


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -0.1}, {"temperature": 2.1}, {"top_p": 1.1}, {"min_p": -1}, {"top_k": -2},
        {"presence_penalty": 3}, {"repetition_penalty": 0}, {"seed": 2**63}, {"seed": 1.5},
        {"logit_bias": {"3": 101}}, {"logit_bias": {"-3": 1}}, {"logit_bias": {"": 1}},
        {"logit_bias": {"400": 1}}, {"stop": [""]}, {"stop": ["a"] * 17}, {"temperature": "1"},
    ],
)  # fmt: skip
def test_values_out_of_range_are_refused(fronted, wrong):
    response = fronted().post(PATH, {"prompt": [0], **wrong})
    assert response.status_code == 400
    assert next(iter(wrong)) in response.json()["error"]["message"]


def test_what_the_package_lacks_is_refused_and_its_usual_value_is_not(fronted):
    missing = ("temperature", "top_k", "bias", "logprobs")
    front = fronted(limits=Limits(4096, 400, 4, 16, missing))
    body = {"prompt": [0], "max_tokens": 1}
    for wrong in ({"temperature": 1}, {"logit_bias": {"1": 2}}, {"logprobs": 1}):
        response = front.post(PATH, {**body, **wrong})
        assert response.status_code == 400
        assert response.json()["error"]["param"] == next(iter(wrong))
        assert "without a sampler" in response.json()["error"]["message"]
    # at temperature 0 a cut changes nothing
    assert front.post(PATH, {**body, "top_k": 5}).status_code == 200
    assert front.engine.seen[-1].sampling.temperature == 0


POLICY = Policy(
    Presets(
        thinking_text=Preset(temperature=0.6, top_k=20),
        non_thinking=Preset(temperature=0.7, top_p=0.8),
        tools=Preset(temperature=0.5),
    ),
    Behavior(thinking_default=True, min_p_floor=0.05, temperature_max=1.5),
)


def test_a_request_that_does_not_say_gets_what_the_model_is_for(fronted):
    front = fronted(usual=Usual(POLICY), reasoning=True, tools="hermes")
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}

    def chatted(**fields):
        assert front.post("/v1/chat/completions", {**body, **fields}).status_code == 200
        return front.engine.seen[-1].sampling

    assert (chatted().temperature, chatted().top_k) == (0.6, 20)
    silent = chatted(chat_template_kwargs={"enable_thinking": False})
    assert (silent.temperature, silent.top_p, silent.top_k) == (0.7, 0.8, 0)
    tool = {"type": "function", "function": {"name": "f"}}
    assert chatted(tools=[tool]).temperature == 0.5
    assert (chatted(temperature=2).temperature, chatted(min_p=0).min_p) == (1.5, 0.05)
    assert chatted(temperature=0.1, top_k=1).top_k == 1


def test_a_checkpoints_own_settings_count_more_unless_the_record_says_not():
    own = own_settings({"temperature": 0.9, "top_p": 0.5, "top_k": 40, "eos_token_id": 2})
    assert own == {"temperature": 0.9, "top_p": 0.5, "top_k": 40}
    usual = Usual(POLICY, own)
    assert usual.preset("non_thinking") == Preset(temperature=0.9, top_p=0.5, top_k=40)
    preferred = Usual(Policy(POLICY.sampling, Behavior(prefer_presets=True)), own)
    assert preferred.preset("non_thinking") == Preset(temperature=0.7, top_p=0.8, top_k=40)
    assert own_settings({"top_k": 0, "min_p": 0, "repetition_penalty": 2}) == {
        "top_k": 0, "min_p": 0, "repetition_penalty": 2,
    }  # fmt: skip
    assert own_settings({"do_sample": False, "temperature": 0.6}) == {"temperature": 0.0}
    assert own_settings({"temperature": "hot", "top_k": -1, "top_p": 7, "min_p": True}) == {}


def test_a_template_is_told_whether_to_think():
    assert Usual(POLICY).variables({}, tools=False) == {"enable_thinking": True}
    assert Usual().variables({}, tools=False) == {"enable_thinking": False}
    behavior = Behavior(thinking_default=True, thinking_in_tools=False, preserve_thinking=True)
    told = Usual(Policy(behavior=behavior)).variables({"a": 1}, tools=True)
    assert told == {"enable_thinking": False, "preserve_thinking": True, "a": 1}
    assert Usual(POLICY).variables({"enable_thinking": False}, tools=False) == {
        "enable_thinking": False
    }


def test_a_thought_is_bounded_as_the_record_says(fronted):
    usual = Usual(Policy(behavior=Behavior(thinking_default=True, thinking_tokens=3)))
    options = {"usual": usual, "reasoning": True, "template": CHAT + "<think>"}
    front = fronted(*saying(list("hmhmhmhm" * 9)), **options)
    message = front.chat(max_tokens=30)["choices"][0]["message"]
    assert message["reasoning_content"] == "hmh"
    assert message["content"] == "hmhmhmhm" * 2
