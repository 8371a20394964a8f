"""Writes a GGUF file of random weights in the shape of Qwen3-0.6B: something to time, not to read.

    python benchmarks/random_gguf.py OUT.gguf --type Q8_0

The layers' weights are one draw, shifted from layer to layer. Its vocabulary is single
bytes and made-up words.
"""

import argparse
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_DIM, MLP, VOCAB = 28, 1024, 16, 8, 128, 3072, 151936
CONTEXT = 40960
SPREAD = 0.02
SHAPES = {
    "attn_q": (HEADS * HEAD_DIM, HIDDEN),
    "attn_k": (KV_HEADS * HEAD_DIM, HIDDEN),
    "attn_v": (KV_HEADS * HEAD_DIM, HIDDEN),
    "attn_output": (HIDDEN, HEADS * HEAD_DIM),
    "ffn_gate": (MLP, HIDDEN),
    "ffn_up": (MLP, HIDDEN),
    "ffn_down": (HIDDEN, MLP),
}
NORMS = {
    "attn_norm": HIDDEN,
    "attn_q_norm": HEAD_DIM,
    "attn_k_norm": HEAD_DIM,
    "ffn_norm": HIDDEN,
}


def write(path: Path, kind: gguf.GGMLQuantizationType) -> None:
    """Write the file, its matrices in the format `kind`."""
    writer = gguf.GGUFWriter(path, "qwen3")
    writer.add_name("random-0.6b")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(MLP)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD_DIM)
    writer.add_value_length(HEAD_DIM)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    writer.add_vocab_size(VOCAB)
    add_vocabulary(writer)
    drawn = np.random.default_rng(0)
    table = drawn.standard_normal((VOCAB, HIDDEN), np.float32) * np.float32(SPREAD)
    add(writer, "token_embd.weight", gguf.quants.quantize(table, kind), kind)
    for name, (rows, columns) in SHAPES.items():
        matrix = drawn.standard_normal((rows, columns), np.float32) * np.float32(SPREAD)
        stored = gguf.quants.quantize(matrix, kind)
        for layer in range(LAYERS):
            add(writer, f"blk.{layer}.{name}.weight", np.roll(stored, 7 * layer, axis=0), kind)
    for layer in range(LAYERS):
        for name, width in NORMS.items():
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(width, np.float32))
    writer.add_tensor("output_norm.weight", np.ones(HIDDEN, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_vocabulary(writer: gguf.GGUFWriter) -> None:
    """Bytes as byte-level BPE writes them, one merge of two, then words that no text has."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = range(256 - len(printable))
    tokens = [*map(chr, printable), *(chr(256 + i) for i in others), "ab"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([*tokens, *(f"<{i}>" for i in range(len(tokens), VOCAB))])
    writer.add_token_types([gguf.TokenType.NORMAL] * VOCAB)
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(0)


def add(
    writer: gguf.GGUFWriter, name: str, stored: NDArray[np.uint8], kind: gguf.GGMLQuantizationType
) -> None:
    """One matrix, as it is stored."""
    writer.add_tensor(name, stored, raw_dtype=kind)


def main() -> None:
    """Read the command line, write the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--type", choices=("BF16", "Q8_0", "Q4_0", "Q4_1"), default="Q8_0")
    options = parser.parse_args()
    write(options.out, gguf.GGMLQuantizationType[options.type])


if __name__ == "__main__":
    main()
