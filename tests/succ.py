"""Checkpoints whose answers are known by hand: after token i always i + 1, or any token alike.

Logits of the first are 1 / sqrt(1 / vocab + eps) for the successor and 0 for all others.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from bedstone.checkpoint.hf_config import parse_hf_config
from bedstone.checkpoint.names import expected_tensors
from bedstone.checkpoint.pieces import BYTE_OF
from checkpoint_files import f32, write_directory

CHAT = "{% for m in messages %}{{ m.content }}{% endfor %}"


def write_succ(
    folder: Path,
    pieces: Sequence[str | bytes],
    *,
    vocab: int = 16,
    context: int = 64,
    uniform: bool = False,
    eos: Sequence[int] = (),
) -> Path:
    """A checkpoint with the vocabulary of `pieces`; what is left of it are single bytes."""
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": vocab,
        "hidden_size": vocab,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "max_position_embeddings": context,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False,
        "eos_token_id": list(eos) or None,
    }
    shapes = expected_tensors(parse_hf_config(config, "config.json", "succ"))
    write_directory(
        folder,
        config,
        {
            name: ("F32", shape, f32(*_values(name, shape, uniform=uniform).ravel()))
            for name, shape in shapes.items()
        },
    )
    _write_tokenizer(folder, pieces, vocab)
    return folder


def _values(name: str, shape: Sequence[int], *, uniform: bool) -> np.ndarray:
    """Layers add nothing: the residual passes as it is."""
    if name == "model.embed_tokens.weight":
        return np.eye(*shape)
    if name == "lm_head.weight":
        return np.zeros(shape) if uniform else np.eye(*shape, k=-1)
    return np.ones(shape) if len(shape) == 1 else np.zeros(shape)


def _write_tokenizer(folder: Path, pieces: Sequence[str | bytes], vocab: int) -> None:
    char_of = {byte: char for char, byte in BYTE_OF.items()}
    data = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
    names = ["".join(char_of[byte] for byte in piece) for piece in data]
    names += [name for name in BYTE_OF if name not in names][: vocab - len(names)]
    tokenizer = Tokenizer(models.BPE({name: at for at, name in enumerate(names)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"chat_template": CHAT}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
