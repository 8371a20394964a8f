"""What a front's process is told first says all that its front stands on."""

from apart import PIECES, vocabulary
from bedstone.checkpoint.chat import ChatTemplate
from bedstone.serve.fronts.opening import Opening, emit_opening, parse_opening
from bedstone.serve.http.front import Voice
from bedstone.serve.http.settings import Settings, digests, opens
from bedstone.serve.http.usual import Usual
from bedstone.serve.requests import Limits
from bedstone.spec.target import Behavior, Policy, Preset, Sampling

LIMITS = Limits(4096, 400, 4, 16, ("constraint",))


def test_a_front_is_told_all_of_it():
    policy = Policy(
        sampling=Sampling(tools=Preset(temperature=0.5, top_k=3)),
        behavior=Behavior(thinking_default=True, min_p_floor=0.01),
    )
    settings = Settings(
        "m",
        keys=digests(["a long key", "another one"]),
        hosts=frozenset({"localhost"}),
        tools="hermes",
        reasoning=True,
        usual=Usual(policy, {"temperature": 0.7}),
        heard=("rates",),
    )
    voice = Voice(vocabulary(), ChatTemplate("{{ bos_token }}", {"bos_token": "<s>"}))
    opening = Opening.of(voice, settings, LIMITS, 7)
    again = parse_opening(emit_opening(opening))
    assert again == opening
    assert opens(again.settings.keys, "another one")
    assert b"another one" not in emit_opening(opening)
    assert again.voice.template == voice.template
    told = again.voice.tokenizer
    assert (told.eos, told.bos, told.size) == (voice.tokenizer.eos, None, voice.tokenizer.size)
    text = "".join(PIECES) + "grün \U0001f44d"
    for special in (False, True):
        ids = voice.tokenizer.encode(text + "<end>", special=special)
        assert told.encode(text + "<end>", special=special) == ids
        assert told.decode(ids, special=True) == text + "<end>"


def test_a_model_without_a_template_has_none_there_either():
    opening = Opening.of(Voice(vocabulary(), None), Settings("m"), LIMITS, 0)
    assert parse_opening(emit_opening(opening)).voice.template is None
