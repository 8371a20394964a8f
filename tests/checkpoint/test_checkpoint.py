"""An open checkpoint accounts for everything: what is needed is there, the rest is reported."""

import dataclasses
import os

import numpy as np
import pytest
import transformers

from bedstone.checkpoint.names import expected_tensors, gguf_name
from bedstone.checkpoint.reference import open_checkpoint
from bedstone.errors import WeightError
from checkpoint_files import (
    GGUF_FIELDS,
    LLAMA,
    f32,
    llama_entries,
    llama_gguf_tensors,
    write_directory,
    write_gguf,
)

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"


def test_b04_a_tied_head_is_the_embedding(tmp_path):
    config = LLAMA | {"hidden_size": 2, "num_attention_heads": 1, "intermediate_size": 2}
    entries = llama_entries(config) | {EMBEDDING: ("F32", [3, 2], f32(1, 0, 0, 1, 1, 1))}
    with_tie = open_checkpoint(str(write_directory(tmp_path / "tied", config, entries)))
    assert with_tie.tensor(HEAD) == with_tie.tensor(EMBEDDING)
    assert with_tie.own_name(HEAD) == EMBEDDING
    logits = with_tie.values(HEAD) @ np.array([2, 3], np.float32)
    assert logits.tolist() == [2, 3, 5]
    untied = write_directory(tmp_path / "untied", config | {"tie_word_embeddings": False}, entries)
    with pytest.raises(WeightError, match=r"`lm_head.weight` missing"):
        open_checkpoint(str(untied))


def test_b04_a_gguf_without_output_is_tied(tmp_path):
    checkpoint = open_checkpoint(str(write_gguf(tmp_path / "m.gguf")))
    assert checkpoint.own_name(HEAD) == "token_embd.weight"
    assert checkpoint.tensor(HEAD).shape == (3, 4)


def test_a_tied_config_over_a_file_with_a_head_reads_the_head(tmp_path):
    entries = llama_entries(LLAMA) | {HEAD: ("F32", [3, 4], f32(*range(12)))}
    checkpoint = open_checkpoint(str(write_directory(tmp_path, LLAMA, entries)))
    assert not checkpoint.config.tie_embeddings
    assert checkpoint.values(HEAD)[0].tolist() == [0, 1, 2, 3]
    assert "`lm_head.weight`, which serves" in checkpoint.notes[0]


FP8 = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
Q = "model.layers.0.self_attn.q_proj.weight"


def test_b06_fp8_weights_without_their_scale_are_refused(tmp_path):
    entries = llama_entries(LLAMA) | {Q: ("F8_E4M3", [4, 4], bytes(16))}
    folder = write_directory(tmp_path, LLAMA | FP8, entries)
    with pytest.raises(WeightError, match=rf"`{Q}` is F8_E4M3 and its scale `{Q}_scale_inv` is"):
        open_checkpoint(str(folder))


@pytest.mark.parametrize("suffix", ["_scale_inv", "_scale"])
def test_b20_an_unsupported_element_type_is_named_with_its_tensor(tmp_path, suffix):
    entries = llama_entries(LLAMA) | {
        Q: ("F8_E4M3", [4, 4], bytes(16)),
        Q + suffix: ("F32", [1, 1], f32(1)),
    }
    folder = write_directory(tmp_path, LLAMA | FP8, entries)
    with pytest.raises(WeightError, match=f"unsupported dtype F8_E4M3 in tensor `{Q}`"):
        open_checkpoint(str(folder))


def test_b20_an_element_type_nobody_needs_does_no_harm(tmp_path):
    entries = llama_entries(LLAMA) | {"extra": ("F4", [2], b"\0")}
    assert open_checkpoint(str(write_directory(tmp_path, LLAMA, entries))).unused == ("extra",)


@pytest.mark.parametrize("method", ["gptq", "fp8"])
def test_a_quantization_method_is_refused(tmp_path, method):
    config = LLAMA | {"quantization_config": {"quant_method": method}}
    folder = write_directory(tmp_path, config, llama_entries(LLAMA))
    with pytest.raises(WeightError, match=f"`quantization_config` .* quant_method `{method}`"):
        open_checkpoint(str(folder))


def test_all_missing_and_misshapen_tensors_are_listed(tmp_path):
    entries = llama_entries(LLAMA)
    del entries["model.norm.weight"], entries[Q]
    entries[EMBEDDING] = ("F32", [4, 3], bytes(48))
    folder = write_directory(tmp_path, LLAMA, entries)
    with pytest.raises(WeightError) as caught:
        open_checkpoint(str(folder))
    for fault in (
        "`model.norm.weight` missing, expected shape [4]",
        f"`{Q}` missing, expected shape [4, 4]",
        f"`{EMBEDDING}` has shape [4, 3], expected [3, 4]",
    ):
        assert fault in str(caught.value)


def test_a_long_list_of_faults_is_counted(tmp_path):
    folder = write_directory(tmp_path, LLAMA | {"num_hidden_layers": 900}, llama_entries(LLAMA))
    with pytest.raises(WeightError, match=r"and 8041 more$"):
        open_checkpoint(str(folder))


def test_unused_tensors_are_reported_and_inert_ones_are_not(tmp_path):
    entries = llama_entries(LLAMA) | {
        "model.layers.0.self_attn.q_proj.bias": ("F32", [4], bytes(16)),
        "model.layers.0.self_attn.rotary_emb.inv_freq": ("F32", [1], bytes(4)),
    }
    checkpoint = open_checkpoint(str(write_directory(tmp_path, LLAMA, entries)))
    assert checkpoint.unused == ("model.layers.0.self_attn.q_proj.bias",)


def test_rope_factors_of_a_gguf_divide_its_frequencies(tmp_path):
    fields = GGUF_FIELDS | {"llama.attention.key_length": 4, "llama.attention.value_length": 4}
    tensors = llama_gguf_tensors() | {
        "rope_freqs.weight": np.array([1, 8], np.float32),
        "blk.0.attn_q.weight": np.zeros((8, 4), np.float32),
        "blk.0.attn_k.weight": np.zeros((4, 4), np.float32),
        "blk.0.attn_v.weight": np.zeros((4, 4), np.float32),
        "blk.0.attn_output.weight": np.zeros((4, 8), np.float32),
    }
    checkpoint = open_checkpoint(str(write_gguf(tmp_path / "m.gguf", fields, tensors)))
    assert checkpoint.config.rope.inv_freq == (1.0, 0.01 / 8)
    assert checkpoint.unused == ()


def test_both_forms_hold_the_same_values(tmp_path):
    ours = open_checkpoint(str(write_directory(tmp_path / "hf", LLAMA)))
    other = open_checkpoint(str(write_gguf(tmp_path / "m.gguf")))
    for name in expected_tensors(ours.config):
        np.testing.assert_array_equal(ours.values(name), other.values(name))
        assert other.own_name(name) == gguf_name(name)


def test_an_identity_follows_header_config_and_weights_and_nothing_else(tmp_path):
    def identity(folder, config=LLAMA, **changes):
        entries = llama_entries(LLAMA) | changes
        checkpoint = open_checkpoint(str(write_directory(tmp_path / folder, config, entries)))
        return checkpoint.identity

    first = identity("a")
    assert identity("b") == first
    assert identity("a", LLAMA | {"rms_norm_eps": 1e-3}) != first
    assert identity("a", **{Q: ("F32", [4, 4], bytes(64))}) != first
    assert identity("a", more=("F32", [0], b"")) != first


def test_a_renamed_file_is_the_same_checkpoint(tmp_path):
    path = write_gguf(tmp_path / "m.gguf")
    first = open_checkpoint(str(path)).identity
    # a name may be no text
    other = path.rename(tmp_path / os.fsdecode(b"other\xff.gguf"))
    assert open_checkpoint(str(other)).identity == first


def test_a_closed_checkpoint_leaves_views_alone(tmp_path):
    checkpoint = open_checkpoint(str(write_directory(tmp_path, LLAMA)))
    view = checkpoint.raw(checkpoint.tensor(EMBEDDING))
    checkpoint.close()
    assert view.view("<f4")[0] == 0.5
    with pytest.raises(dataclasses.FrozenInstanceError):
        checkpoint.path = tmp_path


def test_a_tensor_that_is_not_there_is_named(tmp_path):
    checkpoint = open_checkpoint(str(write_directory(tmp_path, LLAMA)))
    with pytest.raises(WeightError, match=r"has no tensor `model.layers.7.mlp.up_proj.weight`"):
        checkpoint.tensor("model.layers.7.mlp.up_proj.weight")


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("family", ["Llama", "Mistral", "Qwen2", "Qwen3"])
def test_a_sharded_directory_by_transformers_opens_whole(tmp_path, family, tied):
    config = getattr(transformers, f"{family}Config")(
        vocab_size=61,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        tie_word_embeddings=tied,
    )
    model = getattr(transformers, f"{family}ForCausalLM")(config)
    model.save_pretrained(tmp_path, max_shard_size="8KB")
    checkpoint = open_checkpoint(str(tmp_path))
    assert len(checkpoint.weights.files) > 2
    assert checkpoint.unused == ()
    assert checkpoint.notes == ()
    state = model.state_dict()
    assert {*expected_tensors(checkpoint.config)} == {n for n in state if not tied or n != HEAD}
    for name in state:
        np.testing.assert_array_equal(checkpoint.values(name), state[name].numpy())
