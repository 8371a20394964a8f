"""A text model among others: its table of the config, its tensors by their prefix."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from bedstone.checkpoint.hf_wrapped import own_names, text_fields
from bedstone.checkpoint.names import EMBEDDING, HEAD
from bedstone.checkpoint.reference import open_checkpoint
from bedstone.errors import WeightError
from tiny_models import HYBRID, IDS, SIZES, Cached, load

TEXT = {"architectures": ["Qwen3_5ForConditionalGeneration"], "text_config": {"vocab_size": 3}}
VISION = {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "patch_size": 4}


def test_a_config_of_one_model_is_its_own():
    alone = {"architectures": ["LlamaForCausalLM"], "vocab_size": 3}
    assert text_fields(alone, "c") is alone


def test_the_table_of_the_text_model_serves():
    fields = text_fields(TEXT | {"eos_token_id": 2, "vision_config": {}}, "c")
    assert fields == {
        "architectures": ["Qwen3_5ForCausalLM"],
        "eos_token_id": 2,
        "tie_word_embeddings": False,
        "vocab_size": 3,
    }
    assert text_fields(TEXT | {"tie_word_embeddings": True}, "c")["tie_word_embeddings"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text_config": None}, "lacks the field `text_config`"),
        ({"text_config": [1]}, "`text_config` .* expected an object"),
        ({"audio_config": {}}, "`audio_config` is not known"),
    ],
)
def test_what_is_not_known_outside_the_table_is_refused(changes, message):
    with pytest.raises(WeightError, match=message):
        text_fields(TEXT | changes, "c")


@pytest.mark.parametrize(
    ("names", "embedding", "head"),
    [
        ((EMBEDDING, HEAD), EMBEDDING, HEAD),
        (("model.language_model.norm.weight",), "model.language_model.embed_tokens.weight", HEAD),
        (
            ("language_model.model.norm.weight", "language_model.lm_head.weight"),
            "language_model.model.embed_tokens.weight",
            "language_model.lm_head.weight",
        ),
    ],
)
def test_names_take_the_prefix_the_files_use(names, embedding, head):
    own = own_names(names)
    assert (own(EMBEDDING), own(HEAD)) == (embedding, head)


@pytest.mark.parametrize("tied", [False, True])
def test_the_text_model_of_one_that_sees_agrees_with_transformers(tmp_path: Path, tied: bool):
    text = SIZES | HYBRID | {"tie_word_embeddings": tied}
    config = transformers.Qwen3_5Config(
        text_config=text,
        vision_config=VISION | {"out_hidden_size": 32, "num_position_embeddings": 16},
        tie_word_embeddings=tied,
    )
    torch.manual_seed(5)
    model = transformers.Qwen3_5ForConditionalGeneration(config).eval()
    with torch.no_grad():
        for key, weight in model.named_parameters():
            weight.normal_(1.0 if "norm" in key else 0.0, 0.25)
        theirs = model(torch.tensor([IDS])).logits[0].numpy()
    model.save_pretrained(tmp_path)
    assert "text_config" in json.loads((tmp_path / "config.json").read_text())
    ours = load(str(tmp_path)).decode(IDS, Cached())
    assert np.abs(ours - theirs).max() < 1e-5 * np.abs(theirs).max()
    unused = open_checkpoint(str(tmp_path)).unused
    assert unused
    assert all(name.startswith("model.visual.") for name in unused)
