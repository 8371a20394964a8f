"""Checkpoints of a config alone: what is drawn, and where each tensor lies in it."""

import numpy as np
import pytest

from bedstone.checkpoint import drawn
from bedstone.checkpoint.dequant import dequantize
from bedstone.checkpoint.drawn import (
    SPREAD,
    DrawnTensors,
    draw,
    drawn_checkpoint,
    drawn_weights,
    open_drawn,
)
from bedstone.checkpoint.names import EMBEDDING, HEAD
from bedstone.checkpoint.shapes import shape_checkpoint
from bedstone.errors import CallerError
from bedstone.spec.dtype import FORMATS

SMALL = "smollm2-135m"
BLOCK = 1 << 20


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(drawn, "BLOCK_BYTES", BLOCK)


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_values_of_every_format_are_as_wide_and_never_zeros(form):
    data = draw(form, 256 * form.block_bytes * 16)
    values = dequantize(data, form.name, (data.size // form.block_bytes * form.block,))
    assert np.isfinite(values).all()
    assert abs(values.mean()) < SPREAD / 5
    assert SPREAD / 2 < values.std() < 2 * SPREAD
    assert np.count_nonzero(values) > 0.9 * values.size


def test_the_same_seed_draws_the_same():
    form = FORMATS["q4_k"]
    assert np.array_equal(draw(form, 4096), draw(form, 4096))
    assert not np.array_equal(draw(form, 4096), draw(form, 4096, seed=2))


@pytest.mark.parametrize("held", ["bf16", "q8_0"])
def test_every_tensor_of_the_model_is_there_and_none_is_another(held):
    opened = drawn_checkpoint(SMALL, held)
    layer = [info for name, info in opened.tensors.items() if ".layers.3." in name]
    found = [opened.raw(info) for info in layer]
    assert [data.size for data in found] == [info.nbytes for info in layer]
    assert len({data[:256].tobytes() for data in found}) == len(found)
    assert not any(data.flags.writeable for data in found)
    assert opened.file(opened.tensors[EMBEDDING]) is None
    assert opened.own_name(HEAD) == EMBEDDING


def test_values_are_those_of_the_format_wherever_a_tensor_begins():
    opened = drawn_checkpoint(SMALL, "q8_0")
    values = opened.values("model.layers.7.mlp.up_proj.weight")
    assert np.isfinite(values).all()
    assert SPREAD / 2 < values.std() < 2 * SPREAD


def test_a_shape_holds_what_its_checkpoint_does():
    for held in ("bf16", "q4_k"):
        shape = shape_checkpoint("qwen3-0.6b", held)
        opened = drawn_weights(shape)
        assert {n: opened.format(n) for n in shape.constants} == {
            n: shape.format(n) for n in shape.constants
        }


def test_an_identity_says_what_is_drawn_and_draws_nothing():
    opened = drawn_checkpoint("qwen3-8b", "q4_k")
    assert opened.identity == drawn_checkpoint("qwen3-8b", "q4_k").identity
    assert opened.identity != drawn_checkpoint("qwen3-8b", "q8_0").identity
    assert opened.identity != drawn_checkpoint("qwen3-4b", "q4_k").identity
    assert opened.drawn.blocks == {}


def test_memory_is_that_of_the_longest_tensor_and_a_block():
    opened = drawn_checkpoint(SMALL)
    opened.drawn.draw()
    longest = opened.tensors[EMBEDDING].nbytes
    assert {held: data.size for held, data in opened.drawn.blocks.items()} == {
        "bf16": longest + BLOCK
    }
    opened.close()
    assert opened.drawn.blocks == {}


def test_a_reference_names_a_config_and_a_format():
    opened = open_drawn("random:smollm2-135m/q8_0")
    assert opened.reference == "random:smollm2-135m/q8_0"
    assert opened.config.name == SMALL
    for text in ("smollm2-135m/q8_0", "random:smollm2-135m", "random:smollm2-135m/q9"):
        with pytest.raises(CallerError, match="expected `random:CONFIG/FORMAT`"):
            open_drawn(text)
    with pytest.raises(CallerError, match="no config `none`"):
        open_drawn("random:none/bf16")


def test_matrices_of_no_model():
    found = DrawnTensors.of(a=(8, 64), b=(4, 16))
    assert [found.raw(info).size for info in found.tensors.values()] == [1024, 128]
    assert found.file(found.tensors["a"]) is None


def test_no_text_is_asked_of_it():
    opened = drawn_checkpoint(SMALL)
    assert opened.tokenizer.size == 1
    assert opened.chat_template is None
