"""Rotation frequencies: the cases' numbers, and `transformers` on random settings."""

import math

import numpy as np
import pytest
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from bedstone.checkpoint.config import RopeConfig
from bedstone.checkpoint.fields import Fields
from bedstone.checkpoint.hf_rope import parse_rope
from bedstone.checkpoint.rope import (
    Linear,
    Llama3,
    Unscaled,
    Yarn,
    divided,
    inverse_frequencies,
    rope_config,
    yarn_attention_factor,
)
from bedstone.errors import WeightError


def rope(head_dim=64, **config) -> RopeConfig:
    return parse_rope(Fields({"max_position_embeddings": 64} | config, "config.json"), head_dim)


def test_c01_llama3_keeps_blends_and_divides():
    scaling = {
        "rope_type": "llama3",
        "factor": 32,
        "low_freq_factor": 1,
        "high_freq_factor": 4,
        "original_max_position_embeddings": 8192,
    }
    ours = rope(rope_theta=500000.0, rope_scaling=scaling)
    plain = inverse_frequencies(500000.0, 64)
    assert ours.scaling == "llama3"
    assert ours.inv_freq[:15] == plain[:15]
    np.testing.assert_allclose(
        ours.inv_freq[15:18], [0.00129054793, 0.00042955680, 0.0000970828780], rtol=1e-8
    )
    np.testing.assert_allclose(ours.inv_freq[18:], np.array(plain[18:]) / 32, rtol=1e-15)


def test_c01_llama3_tiny():
    ours = rope_config("neox", 8, 10000.0, Llama3(8, 1, 4, 64))
    np.testing.assert_allclose(ours.inv_freq, [1, 0.013042256, 0.00125, 0.000125], rtol=1e-7)


@pytest.mark.parametrize(
    "config",
    [
        {"rope_scaling": {"type": "linear", "factor": 2}},
        {"rope_scaling": {"rope_type": "linear", "factor": 2}},
        {"rope_parameters": {"rope_type": "linear", "factor": 2, "rope_theta": 10000}},
    ],
)
def test_c03_the_kind_is_read_wherever_it_stands(config):
    ours = rope(**config)
    assert ours.scaling == "linear"
    assert 2 * ours.inv_freq[0] == 1.0


@pytest.mark.parametrize("key", ["type", "rope_type"])
def test_c03_an_unknown_kind_is_refused(key):
    with pytest.raises(
        WeightError, match=r"`martian`.*`default`, `linear`, `dynamic`, `llama3`, `yarn`"
    ):
        rope(rope_scaling={key: "martian"})


YARN = {"rope_type": "yarn", "factor": 16, "original_max_position_embeddings": 16384}


def test_c04_yarn_mscale_is_a_ratio():
    both = {"mscale": 1, "mscale_all_dim": 1}
    assert rope(rope_scaling=YARN | both).attention_factor == 1.0
    assert rope(rope_scaling=YARN).attention_factor == pytest.approx(1.2772588722, abs=1e-10)
    assert yarn_attention_factor(4) == pytest.approx(1.1386294361, abs=1e-10)
    assert yarn_attention_factor(40) == pytest.approx(1.3688879454, abs=1e-10)


def test_c05_an_explicit_attention_factor_wins():
    assert rope(rope_scaling=YARN | {"factor": 32, "attention_factor": 1.0}).attention_factor == 1.0
    default = rope(rope_scaling=YARN | {"factor": 32}).attention_factor
    assert default == pytest.approx(1.3465735903, abs=1e-10)


def test_c07_dynamic_is_plain_within_the_original_length_and_refused_beyond():
    scaling = {"rope_type": "dynamic", "factor": 2}
    ours = rope(rope_scaling=scaling)
    assert ours.scaling == "dynamic"
    assert ours.inv_freq == inverse_frequencies(10000.0, 64)
    with pytest.raises(WeightError, match=r"a context of 64 tokens: supported up to .* 32"):
        rope(rope_scaling=scaling | {"original_max_position_embeddings": 32})


def test_c10_frequencies_go_over_the_rotated_width():
    ours = rope(8, partial_rotary_factor=0.5)
    assert ours.rot == 4
    np.testing.assert_allclose(ours.inv_freq, [1, 0.01], rtol=1e-15)


def theirs(config):
    kind = config.rope_parameters["rope_type"]
    if kind == "default":
        theta = config.rope_parameters["rope_theta"]
        return theta ** -(np.arange(0, config.head_dim, 2) / config.head_dim), 1.0
    frequencies, factor = ROPE_INIT_FUNCTIONS[kind](config, device="cpu")
    return frequencies.numpy(), factor


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["default", "linear", "dynamic", "llama3", "yarn"])
def test_frequencies_are_those_of_transformers(kind, seed):
    rng = np.random.default_rng(seed)
    original = int(rng.integers(64, 4096))
    factor = float(rng.integers(2, 40))
    parameters = {
        "default": {},
        "linear": {"factor": factor},
        "dynamic": {"factor": factor},
        "llama3": {
            "factor": factor,
            "low_freq_factor": 1.0,
            "high_freq_factor": float(rng.integers(2, 8)),
            "original_max_position_embeddings": original,
        },
        "yarn": {
            "factor": factor,
            "original_max_position_embeddings": original,
            "truncate": bool(seed % 2),
            "beta_fast": float(rng.integers(16, 64)),
        },
    }[kind]
    parameters |= {"rope_type": kind, "rope_theta": float(rng.integers(10_000, 1_000_000))}
    length = original * int(factor) if kind == "yarn" else original
    config = LlamaConfig(
        hidden_size=256,
        num_attention_heads=2,
        max_position_embeddings=length,
        rope_parameters=dict(parameters),
    )
    ours = rope(128, rope_parameters=parameters, max_position_embeddings=length)
    frequencies, attention = theirs(config)
    np.testing.assert_allclose(ours.inv_freq, frequencies, rtol=3e-6)
    assert ours.attention_factor == pytest.approx(attention, rel=1e-12)


def test_both_places_must_agree():
    linear = {"rope_type": "linear", "factor": 2}
    assert rope(rope_scaling=linear, rope_parameters=linear).scaling == "linear"
    with pytest.raises(WeightError, match="both `rope_parameters` and `rope_scaling`"):
        rope(rope_scaling=linear, rope_parameters=linear | {"factor": 3})


@pytest.mark.parametrize(
    ("scaling", "message"),
    [
        ({"rope_type": "linear"}, "lacks the field `factor`"),
        ({"rope_type": "linear", "factor": "2"}, "field `factor` .* expected a number"),
        ({"rope_type": "linear", "factor": 0}, "a finite number above zero"),
        ({"rope_type": "linear", "factor": math.nan}, "a finite number above zero"),
        ({"rope_type": "linear", "factor": 10**400}, "a finite number above zero"),
        ({"rope_type": "linear", "factor": 2, "tilt": 1}, "field `tilt` is not known"),
        ({"rope_type": "default", "mrope_section": []}, "field `mrope_section` is not known"),
        (
            {"rope_type": "llama3", "factor": 2, "low_freq_factor": 4, "high_freq_factor": 4},
            "expected more than low_freq_factor",
        ),
        ("linear", "expected an object"),
    ],
)
def test_a_faulty_scaling_is_refused(scaling, message):
    with pytest.raises(WeightError, match=message):
        rope(rope_scaling=scaling)


@pytest.mark.parametrize(
    ("rot", "theta", "scaling", "message"),
    [
        (7, 1e4, Unscaled(), "rotary width is 7"),
        (1 << 20, 1e4, Unscaled(), "rotary width is"),
        (8, 1.0, Unscaled(), "rotary base is 1.0"),
        (8, 1e4, Linear(1e-320), "beyond float64"),
        (8, 1e4, Yarn(1e-320, 64, 1.0), "beyond float64"),
    ],
)
def test_numbers_without_frequencies_are_refused(rot, theta, scaling, message):
    with pytest.raises(WeightError, match=message):
        rope_config("neox", rot, theta, scaling)


def test_factors_of_a_file_divide_the_frequencies():
    plain = rope_config("pair", 4, 10000.0, Unscaled())
    assert divided(plain, [1.0, 8.0]).inv_freq == (1.0, plain.inv_freq[1] / 8)
    for factors, message in (([1.0], "1 rope factors for 2"), ([1.0, math.inf], "not a finite")):
        with pytest.raises(WeightError, match=message):
            divided(plain, factors)
