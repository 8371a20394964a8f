"""A `config.json` is read whole: each field is used, known to be inert, or refused by name."""

import json

import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from bedstone.checkpoint.config import require_config
from bedstone.checkpoint.hf_config import FAMILIES, parse_hf_config, quant_method
from bedstone.checkpoint.names import expected_tensors
from bedstone.errors import BedstoneError, WeightError
from checkpoint_files import LLAMA


def parse(generation=None, **changes):
    values = {k: v for k, v in (LLAMA | changes).items() if v is not ...}
    return parse_hf_config(values, "config.json", "tiny", generation)


def family(name, **changes):
    return parse(architectures=[name], model_type=FAMILIES[name].model_type, **changes)


WIDE = {
    "hidden_size": 2560,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 64,
}


@pytest.mark.parametrize(
    ("head_dim", "width", "q", "kv"), [(128, 128, 4096, 1024), (..., 80, 2560, 640)]
)
@pytest.mark.parametrize("name", ["LlamaForCausalLM", "Qwen3ForCausalLM"])
def test_b17_head_dim_is_given_or_derived(name, head_dim, width, q, kv):
    config = family(name, **WIDE, head_dim=head_dim)
    shapes = expected_tensors(config)
    layer = "model.layers.0.self_attn."
    assert shapes[layer + "q_proj.weight"] == (q, 2560)
    assert shapes[layer + "k_proj.weight"] == (kv, 2560)
    assert shapes[layer + "v_proj.weight"] == (kv, 2560)
    assert shapes[layer + "o_proj.weight"] == (2560, q)
    assert config.attention_scale == width**-0.5


def test_c06_the_context_is_the_configs_own():
    yarn = {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 8192}
    config = parse(head_dim=8, max_position_embeddings=32768, rope_scaling=yarn)
    assert config.context == 32768


NEEDED = {"DeepseekV2": {"num_experts_per_tok": 6}}
"""Fields without a default."""


@pytest.mark.parametrize("name", [n.removesuffix("ForCausalLM") for n in FAMILIES])
def test_a_config_by_transformers_is_read(name):
    config_class = getattr(transformers, f"{name}ForCausalLM").config_class
    config = config_class(architectures=[f"{name}ForCausalLM"], **NEEDED.get(name, {}))
    written = json.loads(config.to_json_string(use_diff=False))
    ours = parse_hf_config(written, "config.json", "m")
    assert (ours.vocab, ours.hidden, ours.layers) == (
        config.vocab_size, config.hidden_size, config.num_hidden_layers,
    )  # fmt: skip
    assert (ours.kv_heads, ours.context) == (
        config.num_key_value_heads, config.max_position_embeddings,
    )  # fmt: skip
    assert ours.sliding_window == (getattr(config, "sliding_window", None) or None)


LLAMA_32 = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 128000,
    "eos_token_id": [128001, 128008, 128009],
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "initializer_range": 0.02,
    "intermediate_size": 8192,
    "max_position_embeddings": 131072,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 16,
    "num_key_value_heads": 8,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_scaling": {
        "factor": 32.0,
        "high_freq_factor": 4.0,
        "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    },
    "rope_theta": 500000.0,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.45.0",
    "use_cache": True,
    "vocab_size": 128256,
}


def test_a_config_of_an_older_writer_is_read():
    config = parse_hf_config(LLAMA_32, "config.json", "llama")
    assert config.eos == (128001, 128008, 128009)
    assert config.rope.scaling == "llama3"
    assert config.rope.theta == 500000.0
    assert config.tie_embeddings


def test_each_unknown_field_is_named():
    with pytest.raises(WeightError, match="`attn_logit_cap` is not known; field `zeta` is not"):
        parse(attn_logit_cap=50.0, zeta=None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architectures": ["GPTNeoForCausalLM"]}, "architecture `GPTNeoForCausalLM`.*not known"),
        ({"architectures": ["LlamaForCausalLM", "X"]}, "architectures .* not known"),
        ({"architectures": ..., "model_type": "opt"}, "model type `opt`, which is not known"),
        ({"hidden_act": "relu"}, "`hidden_act` .* is `relu`: expected one of `silu`"),
        ({"sliding_window": 8}, "`sliding_window` is 8, supported is None"),
        ({"rope_interleaved": True}, "`rope_interleaved` is True"),
        ({"is_encoder_decoder": True}, "`is_encoder_decoder` is True"),
        ({"hidden_size": ...}, "lacks the field `hidden_size`"),
        ({"hidden_size": "4"}, "`hidden_size` of `config.json` is '4', expected an integer"),
        ({"hidden_size": True}, "is True, expected an integer"),
        ({"hidden_size": 0}, "is 0, expected an integer from 1"),
        ({"hidden_size": 1 << 40}, "expected an integer from 1"),
        ({"hidden_size": 5}, "hidden_size 5 and 2 heads, expected a multiple"),
        ({"rms_norm_eps": -1e-5}, "expected a finite number above zero"),
        ({"tie_word_embeddings": 1}, "is 1, expected true or false"),
        ({"model_type": 7, "architectures": ...}, "is 7, expected a string"),
        ({"bos_token_id": "1"}, "is '1', expected a token id"),
        ({"eos_token_id": [1, []]}, r"is \[\], expected a token id"),
        ({"attention_bias": "x" * 200}, "is 'x{76}\\.\\.\\., expected"),
    ],
)
def test_a_faulty_field_is_named(changes, message):
    with pytest.raises(WeightError, match=message):
        parse(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_attention_heads": 6, "num_key_value_heads": 4, "head_dim": 2}, "6 query heads"),
        ({"num_hidden_layers": 5000}, "5000 layers: expected 4096 at most"),
        ({"partial_rotary_factor": 2}, "rotary width 4: expected at most the head's, 2"),
    ],
)
def test_sizes_must_fit_each_other(changes, message):
    with pytest.raises(WeightError, match=message):
        require_config(parse(**changes), "config.json")


def test_the_model_type_stands_for_an_absent_architecture():
    assert parse(architectures=..., model_type="qwen3").architecture == "Qwen3ForCausalLM"


def test_biases_follow_the_family():
    def biases(name, **changes):
        config = family(name, **changes)
        return config.attention_bias, config.attention_out_bias, config.mlp_bias

    assert biases("LlamaForCausalLM", attention_bias=True, mlp_bias=True) == (True, True, True)
    assert biases("Qwen3ForCausalLM", attention_bias=True) == (True, True, False)
    assert biases("Qwen2ForCausalLM") == (True, False, False)
    assert biases("MistralForCausalLM") == (False, False, False)


def test_end_tokens_of_the_generation_config_come_first():
    config = parse({"eos_token_id": [5, 6]}, eos_token_id=6, bos_token_id=-1)
    assert config.eos == (5, 6)
    assert config.bos is None


def test_the_quantization_method_is_named():
    assert quant_method({}, "config.json") is None
    assert quant_method({"quantization_config": {"quant_method": "fp8"}}, "c") == "fp8"
    assert quant_method({"quantization_config": {}}, "c") == "unnamed"


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(0, 5), max_size=3),
    st.dictionaries(st.sampled_from(["rope_type", "type", "factor"]), st.text() | st.floats()),
)


@settings(max_examples=400)
@given(
    name=st.sampled_from(sorted(FAMILIES)),
    changes=st.dictionaries(
        st.sampled_from(sorted(FAMILIES["Qwen3ForCausalLM"].rules.used)), VALUES, max_size=3
    ),
)
def test_any_values_give_a_usable_config_or_a_clear_error(name, changes):
    try:
        config = parse(**{"architectures": [name]} | changes)
        require_config(config, "config.json")
    except BedstoneError:
        return
    assert config.layers <= 4096
    assert len(config.rope.inv_freq) * 2 == config.rope.rot <= config.head_dim
