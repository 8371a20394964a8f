"""Which model's record serves a checkpoint, and what is said of those that do not."""

from pathlib import Path

import pytest

from bedstone.errors import CallerError, TargetError
from bedstone.spec.target import ModelRecord, ModelType, Routing
from bedstone.target.models import Model
from bedstone.target.pin import NO_PIN, Pin, parse_target
from bedstone.target.resolve import Subject, matches, resolve


def model(name: str, *rows: ModelType, names: tuple[str, ...] = (), quants: tuple[str, ...] = ()):
    record = ModelRecord(routing=Routing(model_types=rows, match_names=names))
    return Model(name, Path(name), record, name, quants)


def models(*each: Model) -> dict[str, Model]:
    return {one.name: one for one in each}


def subject(name: str = "model", hidden: int = 64, quant: str = "q8_0", **facts: int) -> Subject:
    return Subject("qwen3", {"hidden_size": hidden, **facts}, quant, (name,))


ANY = ModelType(model_type="qwen3")
OF_64 = ModelType(model_type="qwen3", hidden_size=64)
OF_96 = ModelType(model_type="qwen3", hidden_size=96)


def chosen(known: dict[str, Model], seen: Subject, pin: Pin = NO_PIN) -> str:
    return str(resolve(known, seen, pin).require())


def test_a_row_with_the_hidden_size_goes_before_one_without():
    known = models(model("wide", ANY), model("narrow", OF_64))
    assert chosen(known, subject(hidden=64)) == "narrow/any"
    assert chosen(known, subject(hidden=65)) == "wide/any"
    judged = {str(j.candidate): j.dropped for j in resolve(known, subject()).judged}
    assert judged == {
        "wide/any": "a row with the checkpoint's hidden_size goes before one without",
        "narrow/any": None,
    }


def test_a_folder_of_the_quantization_goes_before_none():
    known = models(model("a", ANY, quants=("q4_0", "q8_0")))
    assert chosen(known, subject(quant="q8_0")) == "a/q8_0"
    assert chosen(known, subject(quant="f16")) == "a/any"
    judged = {str(j.candidate): j.dropped for j in resolve(known, subject(quant="q8_0")).judged}
    assert judged["a/q4_0"] == "quantization is `q8_0`, wanted `q4_0`"
    assert judged["a/any"] == "a folder of the checkpoint's quantization goes before none"


def test_a_quantization_never_decides_between_models():
    known = models(
        model("a", OF_64, names=("aa",), quants=("q8_0",)), model("b", OF_64, names=("bb",))
    )
    assert chosen(known, subject("some-bb")) == "b/any"
    assert resolve(known, subject("other")).chosen is None


def test_names_decide_between_models_word_for_word():
    known = models(
        model("a", OF_64, names=("Qwen3.8-27B",)), model("b", OF_64, names=("qwen3-4b",))
    )
    assert chosen(known, subject("qwen3.8-27b-instruct-q8")) == "a/any"
    assert chosen(known, subject("Qwen_Qwen3-4B")) == "b/any"
    assert not matches(["qwen3-27b"], "qwen3.8-27b")
    assert not matches(["qwen3.8"], "qwen3.80")
    assert not matches(["qwen3"], "qwen30")
    assert matches(["qwen3.8"], "My-QWEN3_8-tune")


def test_the_first_telling_name_decides():
    known = models(model("a", OF_64, names=("aa",)), model("b", OF_64, names=("bb",)))
    seen = Subject("qwen3", {"hidden_size": 64}, "q8_0", ("x", "bb-tune", "aa"))
    assert chosen(known, seen) == "b/any"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("checkpoint", "no match name of theirs is in `checkpoint`"),
        ("aa-bb", "`aa-bb` holds match names of `a`, `b`"),
    ],
)
def test_what_is_left_undecided_is_an_error_with_both_sides_and_the_fix(name, why):
    known = models(
        model("a", OF_64, names=("aa",)), model("b", OF_64, names=("bb",)), model("c", ANY)
    )
    found = resolve(known, subject(name))
    assert found.chosen is None
    with pytest.raises(TargetError) as refused:
        found.require()
    message = str(refused.value)
    assert f"2 models claim `{name}` (model_type `qwen3`, hidden_size 64" in message
    assert "`a` (match names `aa`); `b` (match names `bb`)" in message
    assert why in message
    assert "--target auto/a" in message
    assert "c" not in [j.candidate.model for j in found.judged if j.dropped is None]


def test_a_pin_settles_what_is_ambiguous():
    known = models(model("a", OF_64, names=("aa",)), model("b", OF_64, names=("bb",)))
    assert chosen(known, subject(), Pin("b")) == "b/any"


def test_a_pin_must_still_fit():
    known = models(model("a", OF_64), model("b", ANY, quants=("q8_0", "q4_0")))
    with pytest.raises(TargetError, match="`a`: hidden_size is 96, wanted 64"):
        resolve(known, subject(hidden=96), Pin("a")).require()
    with pytest.raises(CallerError, match="no model `bb`: did you mean `b`"):
        resolve(known, subject(), Pin("bb"))
    with pytest.raises(CallerError, match="no model `other`: expected one of `a`, `b`"):
        resolve(known, subject(), Pin("other"))
    with pytest.raises(
        CallerError, match="no folder for quantization `f16`: it has `q8_0`, `q4_0`"
    ):
        resolve(known, subject(), Pin("b", "f16"))
    assert chosen(known, subject(quant="f32"), Pin("b", "q4_0")) == "b/q4_0"


def test_a_model_type_nobody_serves_is_answered_with_those_there_are():
    seen = Subject("gpt2", {"hidden_size": 64}, "q8_0", ("x",))
    with pytest.raises(TargetError, match=r"model_type `gpt2`.*known model types are `qwen3`"):
        resolve(models(model("a", ANY)), seen).require()


def test_another_models_record_that_serves_is_visible():
    known = models(model("own", OF_64, names=("qwen3-4b",)))
    assert resolve(known, subject("qwen3-4b-instruct")).borrowed is False
    assert resolve(known, subject("my-tune")).borrowed is True
    assert resolve(models(model("generic", ANY)), subject("my-tune")).borrowed is False


def test_the_row_that_says_most_stands_for_its_model():
    rows = (OF_64, ModelType(model_type="qwen3", hidden_size=64, head_dim=16))
    found = resolve(models(model("a", *rows)), subject(head_dim=16))
    assert found.require().row is rows[1]


@pytest.mark.parametrize(
    ("text", "hardware", "pin"),
    [
        ("auto", "auto", Pin()),
        ("hopper", "hopper", Pin()),
        ("auto/qwen3", "auto", Pin("qwen3")),
        ("hopper/auto", "hopper", Pin()),
        ("hopper/qwen3/q8_0", "hopper", Pin("qwen3", "q8_0")),
    ],
)
def test_a_target_is_written_in_up_to_three_parts(text, hardware, pin):
    assert parse_target(text) == (hardware, pin)


@pytest.mark.parametrize("text", ["", "a//b", "/a", "a/b/c/d", "a/"])
def test_other_text_is_no_target(text):
    with pytest.raises(CallerError, match="expected HARDWARE"):
        parse_target(text)
