"""The page's facts: lives that agree with the schedule, and text no browser takes for markup."""

import json
import re
from dataclasses import replace

import pytest

from bedstone.build.lane import target_lane
from bedstone.build.page.emit import emit_page
from bedstone.build.page.facts import page_facts
from bedstone.build.page.lives import lives
from bedstone.build.request import Options
from bedstone.build.survey import Choices, survey
from bedstone.checkpoint.shapes import shape_checkpoint
from bedstone.lane.touch import touches
from planned import MACHINE, planned, surveyed

FACTS = re.compile(r'<script type="application/json" id="facts">(.*?)</script>', re.DOTALL)


@pytest.mark.parametrize("form", ["decode", "chunk", "batch"])
def test_no_two_buffers_hold_a_byte_at_one_time(form):
    found = lives(planned("qwen3-0.6b", form, "q4_0").schedule)
    for at, one in enumerate(found):
        for other in found[at + 1 :]:
            if other.slot.offset >= one.slot.end:
                break
            in_turn = one.last <= other.first or other.last <= one.first
            apart = one.last < other.first or other.last < one.first
            assert apart or (in_turn and one.slot == other.slot), (one, other)


@pytest.mark.parametrize("name", ["qwen3-next-80b-a3b", "deepseek-v2-lite"])
def test_every_operand_of_every_family_is_drawn(name):
    steps = page_facts(surveyed(name, "decode"))["forms"]["decode"]["steps"]
    families = {step["family"] for step in steps}
    assert {"product", "norm", "attention", "mixture", "ends"} <= families
    assert ("recurrent" in families) == name.startswith("qwen3")
    assert all(step["source"] for step in steps)


@pytest.mark.parametrize("form", ["decode", "batch"])
def test_a_buffer_lives_from_its_first_touch_to_its_last(form):
    schedule = planned("qwen3-0.6b", form, "q4_0").schedule
    found = lives(schedule)
    slots = [buffer for buffer in schedule.buffers.values() if buffer.f32 or buffer.quant]
    pieces = sum((buffer.f32 is not None) + 3 * (buffer.quant is not None) for buffer in slots)
    assert len(found) == pieces
    for life in found:
        touched = {*life.readers, *life.writers}
        assert life.first == min(touched) == min(life.writers)
        ends = {max(touched), len(schedule.steps) - 1}
        assert life.last in ends
    assert max(life.slot.end for life in found) <= schedule.arena_bytes


def test_every_launch_is_drawn_with_its_operands():
    survey = surveyed("qwen3-0.6b", "decode")
    facts = page_facts(survey)["forms"]["decode"]
    schedule = survey.steps["decode"].schedule
    assert len(facts["steps"]) == len(schedule.steps) == facts["launches"]
    for drawn, step in zip(facts["steps"], schedule.steps, strict=True):
        written = {name for name, *_, write in drawn["moved"] if write}
        assert written == {touch.tensor for touch in touches(step.launch) if touch.write}
        assert drawn["ops"] == list(step.ops)
    assert {rule for step in facts["steps"] for rule in step["rules"]} == set(facts["fusions"])


@pytest.mark.parametrize("form", ["decode", "batch"])
def test_launches_that_one_kernel_does_are_drawn_as_one(form):
    lane = target_lane("hopper", "quantized")
    choices = Choices(Options(context=4096, sequences=3), (form,), lane)
    survey_of = survey(shape_checkpoint("qwen3-0.6b", "bf16"), choices, MACHINE)
    facts = page_facts(survey_of)["forms"][form]
    planned_step = survey_of.steps[form]
    assert len(facts["steps"]) == facts["launches"] == len(planned_step.schedule.steps) - 28
    drawn = [step for step in facts["steps"] if step["entry"] == "attention_turned_n"]
    assert len(drawn) == 28
    for step in drawn:
        assert (step["kind"], step["family"]) == ("attention_turned", "attention")
        assert step["source"] == "attention_128.cu"
        assert {"qk_norm_rope", "rope_set"} <= set(step["rules"])
        assert [what for _, what, *_ in step["moved"]].count("cache") >= 3
    for _, _, _, _, _, first, last, readers, writers in facts["lives"]:
        touched = [*readers, *writers]
        assert 0 <= first == min(touched) <= max(touched) <= last < facts["launches"]


def test_a_page_asks_for_nothing_and_holds_its_facts():
    survey = surveyed("smollm2-135m", "decode", "chunk", "batch")
    text = emit_page(survey)
    facts = json.loads(FACTS.search(text)[1])
    assert list(facts["forms"]) == ["decode", "chunk", "batch"]
    assert facts == json.loads(json.dumps(page_facts(survey)))
    assert not re.search(r"""(?:src|href|@import|url\()\s*=?\s*["'(]?\s*(?:https?:)?//""", text)
    assert "default-src 'none'" in text


def test_a_models_name_is_text_only():
    name = "</script><script>alert(1)</script>&\u2028"
    survey = surveyed("smollm2-135m")
    text = emit_page(replace(survey, config=replace(survey.config, name=name)))
    assert "<script>alert" not in text
    assert "&lt;/script&gt;" in text
    assert json.loads(FACTS.search(text)[1])["model"] == name


def test_the_same_survey_is_the_same_page():
    survey = surveyed("smollm2-135m")
    assert emit_page(survey) == emit_page(survey)
