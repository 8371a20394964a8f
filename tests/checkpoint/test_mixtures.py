"""Mixtures of experts as configs and files hold them."""

import numpy as np
import pytest

from bedstone.checkpoint.config import MixtureConfig, require_config
from bedstone.checkpoint.constants import Window, constants
from bedstone.checkpoint.gguf_config import parse_gguf_config
from bedstone.checkpoint.hf_config import parse_hf_config
from bedstone.checkpoint.names import expected_tensors, gguf_name
from bedstone.checkpoint.reference import open_checkpoint
from bedstone.errors import WeightError
from checkpoint_files import write_directory, write_gguf

QWEN3 = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 151643,
    "decoder_sparse_step": 1,
    "eos_token_id": 151645,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "initializer_range": 0.02,
    "intermediate_size": 6144,
    "max_position_embeddings": 40960,
    "max_window_layers": 48,
    "mlp_only_layers": [],
    "model_type": "qwen3_moe",
    "moe_intermediate_size": 768,
    "norm_topk_prob": True,
    "num_attention_heads": 32,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 48,
    "num_key_value_heads": 4,
    "output_router_logits": False,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000.0,
    "router_aux_loss_coef": 0.001,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
QWEN2 = {
    "architectures": ["Qwen2MoeForCausalLM"],
    "attention_dropout": 0.0,
    "bos_token_id": 151643,
    "decoder_sparse_step": 1,
    "eos_token_id": 151643,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "initializer_range": 0.02,
    "intermediate_size": 5632,
    "max_position_embeddings": 8192,
    "max_window_layers": 21,
    "model_type": "qwen2_moe",
    "moe_intermediate_size": 1408,
    "norm_topk_prob": False,
    "num_attention_heads": 16,
    "num_experts": 60,
    "num_experts_per_tok": 4,
    "num_hidden_layers": 24,
    "num_key_value_heads": 16,
    "output_router_logits": False,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0,
    "router_aux_loss_coef": 0.001,
    "shared_expert_intermediate_size": 5632,
    "sliding_window": 32768,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
SMALL = QWEN3 | {
    "hidden_size": 4,
    "intermediate_size": 6,
    "head_dim": 2,
    "moe_intermediate_size": 2,
    "num_attention_heads": 2,
    "num_experts": 3,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 1,
    "num_key_value_heads": 1,
    "vocab_size": 3,
}
MLP = "model.layers.0.mlp."


def parse(base=QWEN3, **changes):
    values = {name: value for name, value in (base | changes).items() if value is not ...}
    return parse_hf_config(values, "config.json", "tiny")


def test_qwen3_as_published():
    config = parse()
    assert config.mixture == MixtureConfig(128, 8, 768, tuple(range(48)), "softmax", normalise=True)
    assert config.qk_norm
    assert not config.attention_bias
    assert config.sliding_window is None
    require_config(config, "config.json")


def test_qwen2_as_published():
    config = parse(QWEN2)
    assert config.mixture == MixtureConfig(
        60, 4, 1408, tuple(range(24)), "softmax", normalise=False, shared=5632, shared_gate=True
    )
    assert (config.attention_bias, config.attention_out_bias) == (True, False)
    assert not parse(QWEN2, qkv_bias=False).attention_bias
    require_config(config, "config.json")


def test_absent_fields_are_those_of_transformers():
    absent = dict.fromkeys(
        ("num_experts", "num_experts_per_tok", "moe_intermediate_size", "norm_topk_prob",
         "decoder_sparse_step", "mlp_only_layers", "shared_expert_intermediate_size"),
        ...,
    )  # fmt: skip
    assert parse(QWEN2, **absent).mixture == parse(QWEN2).mixture
    normalised = parse(**absent | {"norm_topk_prob": True, "shared_expert_intermediate_size": ...})
    assert normalised.mixture == parse().mixture


@pytest.mark.parametrize(
    ("changes", "layers"),
    [
        ({"num_hidden_layers": 4, "decoder_sparse_step": 2}, (1, 3)),
        ({"num_hidden_layers": 4, "mlp_only_layers": [0, 3, 9]}, (1, 2)),
        ({"num_hidden_layers": 2, "decoder_sparse_step": 3}, ()),
        ({"num_hidden_layers": 2, "mlp_only_layers": None}, (0, 1)),
    ],
)
def test_some_layers_stay_dense(changes, layers):
    assert parse(**changes).mixture.layers == layers


def test_the_number_of_experts_has_two_names():
    assert parse(num_experts=..., num_local_experts=7).mixture.experts == 7
    assert parse(num_experts=7, num_local_experts=7).mixture.experts == 7
    with pytest.raises(WeightError, match="has 7 `num_experts` and 8 `num_local_experts`"):
        parse(num_experts=7, num_local_experts=8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mlp_only_layers": 3}, "`mlp_only_layers` of `config.json` is 3, expected a list"),
        ({"mlp_only_layers": [True]}, r"`mlp_only_layers` of `config.json` is \[True\]"),
        ({"decoder_sparse_step": 0}, "`decoder_sparse_step` of `config.json` is 0"),
        ({"num_experts": 0}, "`num_experts` of `config.json` is 0"),
        ({"layer_types": []}, "field `layer_types` is not known"),
        ({"shared_expert_intermediate_size": 4}, "`shared_expert_intermediate_size` is not known"),
    ],
)
def test_a_faulty_field_is_named(changes, message):
    with pytest.raises(WeightError, match=message):
        parse(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_experts_per_tok": 129}, "129 experts chosen: expected 128 at most"),
        ({"num_experts": 1 << 20}, "experts in all layers: expected 131072 at most"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(WeightError, match=message):
        require_config(parse(**changes), "config.json")


def test_the_tensors_of_a_mixture():
    found = {n.removeprefix(MLP) for n in expected_tensors(parse(SMALL)) if n.startswith(MLP)}
    experts = {f"experts.{e}.{p}_proj.weight" for e in range(3) for p in ("gate", "up", "down")}
    assert found == {"gate.weight"} | experts
    shapes = expected_tensors(parse(QWEN2, num_hidden_layers=1))
    assert shapes[MLP + "shared_expert.down_proj.weight"] == (2048, 5632)
    assert shapes[MLP + "shared_expert_gate.weight"] == (1, 2048)


def test_a_stack_is_the_rows_of_each_expert_in_turn():
    stack = constants(parse(SMALL))[MLP + "experts.down_proj.weight"]
    assert stack.shape == (3, 4, 2)
    assert stack.windows == tuple(
        Window(f"{MLP}experts.{e}.down_proj.weight", 0, 4) for e in range(3)
    )


def entries(layout: str):
    """A mixture whose expert e holds 100 e + 0, 1, … as gate, + 10 … as up, + 20 … as down."""
    shapes = {"gate": (2, 4), "up": (2, 4), "down": (4, 2)}
    parts = {
        part: np.stack([100.0 * e + 10 * i + np.arange(8) for e in range(3)]).reshape(3, *shape)
        for i, (part, shape) in enumerate(shapes.items())
    }
    if layout == "merged":
        held = {
            "gate_up_proj": np.concatenate([parts["gate"], parts["up"]], axis=1),
            "down_proj": parts["down"],
        }
    else:
        held = {
            f"{e}.{part}_proj.weight": stack[e] for part, stack in parts.items() for e in range(3)
        }
    experts = {f"{MLP}experts.{name}": array for name, array in held.items()}
    rest = {
        name: np.zeros(shape)
        for name, shape in expected_tensors(parse(SMALL)).items()
        if "experts" not in name
    }
    return parts, {
        name: ("F32", array.shape, array.astype("<f4").tobytes())
        for name, array in (rest | experts).items()
    }


@pytest.mark.parametrize("layout", ["apart", "merged"])
def test_experts_are_the_same_however_the_files_hold_them(layout, tmp_path):
    parts, stored = entries(layout)
    checkpoint = open_checkpoint(str(write_directory(tmp_path, SMALL, stored)))
    assert checkpoint.config.mixture.layout == layout
    assert checkpoint.unused == ()
    for part, stack in parts.items():
        name = f"{MLP}experts.{part}_proj.weight"
        assert checkpoint.format(name) == "f32"
        np.testing.assert_array_equal(checkpoint.values(name), stack)


GGUF = {
    "block_count": 1,
    "context_length": 32,
    "embedding_length": 4,
    "feed_forward_length": 6,
    "attention.head_count": 2,
    "attention.head_count_kv": 1,
    "attention.layer_norm_rms_epsilon": 1e-6,
    "vocab_size": 3,
    "expert_count": 3,
    "expert_used_count": 2,
    "expert_feed_forward_length": 2,
    "expert_shared_feed_forward_length": 5,
}


def test_a_gguf_file_holds_experts_stacked(tmp_path):
    """And the gate of the network that every row takes as a vector."""
    parts, _ = entries("apart")
    config = parse_gguf_config(
        {"general.architecture": "qwen2moe", **{f"qwen2moe.{k}": v for k, v in GGUF.items()}},
        ["output.weight"],
        "m.gguf",
        "m",
    )
    tensors = {
        gguf_name(name): np.full(shape, 7, "<f4")
        for name, shape in expected_tensors(config).items()
    }
    tensors["blk.0.ffn_gate_inp_shexp.weight"] = np.array([1, 2, 3, 4], "<f4")
    for part, stack in parts.items():
        tensors[f"blk.0.ffn_{part}_exps.weight"] = stack.astype("<f4")
    fields = {f"qwen2moe.{name}": value for name, value in GGUF.items()}
    path = write_gguf(tmp_path / "m.gguf", fields, tensors, arch="qwen2moe")
    checkpoint = open_checkpoint(str(path))
    assert checkpoint.unused == ()
    for part, stack in parts.items():
        np.testing.assert_array_equal(checkpoint.values(f"{MLP}experts.{part}_proj.weight"), stack)
    gate = checkpoint.values(MLP + "shared_expert_gate.weight")
    np.testing.assert_array_equal(gate, [[1, 2, 3, 4]])


def test_a_missing_expert_is_named(tmp_path):
    _, stored = entries("apart")
    del stored[MLP + "experts.1.up_proj.weight"]
    folder = write_directory(tmp_path, SMALL, stored)
    with pytest.raises(WeightError, match=r"`.*experts\.1\.up_proj\.weight` missing, .* \[2, 4\]"):
        open_checkpoint(str(folder))


def test_experts_of_two_formats_are_refused(tmp_path):
    _, stored = entries("apart")
    name = MLP + "experts.1.up_proj.weight"
    stored[name] = ("F16", (2, 4), np.zeros(8, "<f2").tobytes())
    checkpoint = open_checkpoint(str(write_directory(tmp_path, SMALL, stored)))
    with pytest.raises(WeightError, match="are held as f16, f32"):
        checkpoint.format(MLP + "experts.up_proj.weight")
