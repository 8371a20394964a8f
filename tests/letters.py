"""A tokenizer of one letter an id, for tiny models."""

import string
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as Decoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

LETTERS = string.ascii_letters + string.digits[:9]
"""Id 0 is `a`; there are 61."""

GGUF_LETTERS = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": [*LETTERS, "ab"],
    "tokenizer.ggml.merges": ["a b"],
}
"""The same as fields of a GGUF file, which asks for a merge."""


def write_tokenizer(folder: Path) -> None:
    """Write `tokenizer.json`."""
    tokenizer = Tokenizer(BPE({letter: i for i, letter in enumerate(LETTERS)}, []))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = Decoder()
    tokenizer.save(str(folder / "tokenizer.json"))
