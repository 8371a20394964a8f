"""Reported cases about numerics that no module's own tests hold."""

import pytest

from bedstone.checkpoint.reference import open_checkpoint
from bedstone.errors import WeightError
from checkpoint_files import LLAMA, f32, llama_entries, write_directory

SINKS = "model.layers.0.self_attn.sinks"


def test_c19_a_sink_that_no_family_reads_is_said(tmp_path):
    """Attention here has no sinks: who runs a checkpoint that holds them is told."""
    entries = llama_entries(LLAMA) | {SINKS: ("F32", (2,), f32(1.0, 20.0))}
    opened = open_checkpoint(str(write_directory(tmp_path / "sinks", LLAMA, entries)))
    assert opened.notes == (f"no part of the model reads `{SINKS}`",)
    opened.close()


@pytest.mark.parametrize("field", [{"attention_sinks": True}, {"attn_sink": 1.0}])
def test_c19_a_field_that_asks_for_sinks_is_refused(tmp_path, field):
    folder = write_directory(tmp_path / "sinks", LLAMA | field, llama_entries(LLAMA))
    with pytest.raises(WeightError, match=next(iter(field))):
        open_checkpoint(str(folder))


def test_c19_a_family_with_sinks_is_unknown(tmp_path):
    config = LLAMA | {"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss"}
    with pytest.raises(WeightError, match="GptOssForCausalLM"):
        open_checkpoint(str(write_directory(tmp_path / "sinks", config, llama_entries(LLAMA))))
