"""GGUF metadata becomes the same `ModelConfig`; what it does not say, the tensors do."""

import pytest

from bedstone.checkpoint.config import MixtureConfig
from bedstone.checkpoint.gguf_config import parse_gguf_config
from bedstone.checkpoint.names import gguf_name
from bedstone.errors import WeightError
from checkpoint_files import GGUF_FIELDS


def parse(tensors=("token_embd.weight",), arch="llama", **changes):
    fields = {f"{arch}.{k.removeprefix('llama.')}": v for k, v in GGUF_FIELDS.items()}
    fields |= {k.replace("__", "."): v for k, v in changes.items()}
    fields = {"general.architecture": arch} | {k: v for k, v in fields.items() if v is not ...}
    return parse_gguf_config(fields, tensors, "m.gguf", "m")


def test_pairs_turn_as_the_architecture_stores_them():
    assert parse().rope.kind == "pair"
    assert parse().architecture == "LlamaForCausalLM"
    qwen3 = parse(arch="qwen3")
    assert (qwen3.rope.kind, qwen3.qk_norm, qwen3.architecture) == (
        "neox", True, "Qwen3ForCausalLM",
    )  # fmt: skip
    assert parse(arch="qwen2").architecture == "Qwen2ForCausalLM"


def test_tensors_tell_of_ties_and_biases():
    assert parse().tie_embeddings
    assert not parse(["output.weight"]).tie_embeddings
    config = parse([gguf_name(f"model.layers.0.{m}.bias") for m in ("self_attn.q_proj",)])
    assert (config.attention_bias, config.attention_out_bias, config.mlp_bias) == (
        True, False, False,
    )  # fmt: skip
    everything = ["blk.0.attn_q.bias", "blk.0.attn_output.bias", "blk.0.ffn_down.bias"]
    config = parse(everything)
    assert config.attention_out_bias
    assert config.mlp_bias


def test_the_key_length_is_the_head_width():
    config = parse(llama__attention__key_length=16, llama__attention__value_length=16)
    assert config.head_dim == 16
    assert config.attention_scale == 0.25


def test_scalings():
    linear = parse(llama__rope__scaling__type="linear", llama__rope__scaling__factor=2.0)
    assert linear.rope.inv_freq == (0.5,)
    old = parse(llama__rope__scale_linear=4.0)
    assert old.rope.inv_freq == (0.25,)
    yarn = parse(
        llama__rope__scaling__type="yarn",
        llama__rope__scaling__factor=4.0,
        llama__rope__scaling__original_context_length=8,
        llama__attention__key_length=8,
    )
    assert yarn.rope.scaling == "yarn"
    assert yarn.rope.attention_factor == pytest.approx(1.1386294361, abs=1e-10)


def test_the_file_names_the_model_and_its_end_tokens():
    config = parse(
        general__name="Tiny",
        **{
            "tokenizer.ggml.bos_token_id": 1,
            "tokenizer.ggml.eos_token_id": 2,
            "tokenizer.ggml.eot_token_id": 2,
            "tokenizer.ggml.eom_token_id": 3,
        },
    )
    assert (config.name, config.bos, config.eos) == ("Tiny", 1, (2, 3))
    assert parse().name == "m"


EXPERTS = {"expert_count": 6, "expert_used_count": 2, "expert_feed_forward_length": 5}


def of_experts(arch, **changes):
    fields = EXPERTS | {"expert_shared_feed_forward_length": 7} | changes
    if arch == "qwen3moe":
        del fields["expert_shared_feed_forward_length"]
    return parse(arch=arch, **{f"{arch}__{name}": value for name, value in fields.items()})


def test_mixtures():
    qwen3, qwen2 = of_experts("qwen3moe"), of_experts("qwen2moe")
    assert (qwen3.architecture, qwen2.architecture) == (
        "Qwen3MoeForCausalLM", "Qwen2MoeForCausalLM",
    )  # fmt: skip
    assert qwen3.mixture == MixtureConfig(
        6, 2, 5, (0,), "softmax", normalise=True, layout="stacked"
    )
    assert qwen2.mixture == MixtureConfig(
        6, 2, 5, (0,), "softmax", normalise=False, shared=7, shared_gate=True, layout="stacked"
    )
    with pytest.raises(WeightError, match="lacks the field `expert_used_count`"):
        of_experts("qwen3moe", expert_used_count=None)
    with pytest.raises(WeightError, match="field `expert_weights_norm` is not known"):
        of_experts("qwen3moe", expert_weights_norm=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arch": "bert"}, "architecture `bert`, which is not known: expected one of `llama`"),
        ({"llama__attention__scale": 0.1}, "field `attention.scale` is not known"),
        ({"llama__expert_count": 8}, "`expert_count` is 8, supported is 0"),
        ({"llama__block_count": ...}, "lacks the field `block_count`"),
        ({"llama__vocab_size": ...}, "lacks the field `vocab_size`"),
        ({"llama__attention__value_length": 4}, "`attention.value_length` .* is 4"),
        ({"llama__attention__head_count": 3}, "4 values for 3 heads"),
        ({"llama__rope__scaling__type": "longrope"}, "`longrope`: expected `none`, `linear` or"),
        ({"split__count": 2, "split__no": 0}, "`split.count` is 2"),
        ({"adapter__type": "lora"}, "field `adapter.type` is not known"),
    ],
)
def test_a_faulty_field_is_named(changes, message):
    with pytest.raises(WeightError, match=message):
        parse(**changes)
