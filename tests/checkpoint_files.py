"""Small checkpoints written byte by byte, for the tests of the readers."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import gguf
import numpy as np

from bedstone.checkpoint.gguf_config import parse_gguf_config
from bedstone.checkpoint.hf_config import parse_hf_config
from bedstone.checkpoint.names import expected_tensors, gguf_name
from bedstone.spec.dtype import FORMATS, FormatName

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 3,
    "hidden_size": 4,
    "intermediate_size": 6,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 32,
    "tie_word_embeddings": True,
}

ALIGNMENT = 32
"""Of a tensor in a GGUF file, in bytes."""

Entry = tuple[str, Sequence[int], bytes]


def f32(*values: float) -> bytes:
    return np.array(values, "<f4").tobytes()


def write_header(path: Path, header: object, data: bytes = b"") -> Path:
    """A file with this header, whatever it says; bytes are taken as the header's text."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def write_safetensors(path: Path, entries: Mapping[str, Entry]) -> Path:
    """A well-formed file of name to (dtype, shape, bytes)."""
    header, data = {}, b""
    for name, (dtype, shape, raw) in entries.items():
        offsets = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": offsets}
        data += raw
    return write_header(path, header, data)


def llama_entries(config: Mapping[str, Any]) -> dict[str, Entry]:
    """Every tensor of the model in its shape, holding 0.5, 1.5, …"""
    expected = expected_tensors(parse_hf_config(config, "config.json", "tiny"))
    return {
        name: ("F32", shape, (np.arange(np.prod(shape), dtype="<f4") + 0.5).tobytes())
        for name, shape in expected.items()
    }


def write_directory(
    folder: Path, config: Mapping[str, Any], entries: Mapping[str, Entry] | None = None
) -> Path:
    """A Hugging Face directory of one safetensors file."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    entries = llama_entries(config) if entries is None else entries
    write_safetensors(folder / "model.safetensors", entries)
    return folder


GGUF_FIELDS: dict[str, int | float | str | bool] = {
    "llama.block_count": 1,
    "llama.context_length": 32,
    "llama.embedding_length": 4,
    "llama.feed_forward_length": 6,
    "llama.attention.head_count": 2,
    "llama.attention.head_count_kv": 1,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.vocab_size": 3,
}


def llama_gguf_tensors() -> dict[str, np.ndarray]:
    return {
        gguf_name(name): np.frombuffer(raw, "<f4").reshape(shape)
        for name, (_, shape, raw) in llama_entries(LLAMA).items()
    }


def write_gguf(
    path: Path,
    fields: Mapping[str, Any] = GGUF_FIELDS,
    tensors: Mapping[str, np.ndarray] | None = None,
    arch: str = "llama",
    held: Mapping[str, str] = MappingProxyType({}),
) -> Path:
    """A GGUF file by the reference writer; a list becomes an array.

    Tensors that are bytes of a quantized format say which in `held`.
    """
    writer = gguf.GGUFWriter(path, arch)
    _add_fields(writer, fields)
    for name, tensor in (llama_gguf_tensors() if tensors is None else tensors).items():
        kind = gguf.GGMLQuantizationType[held[name].upper()] if name in held else None
        writer.add_tensor(name, tensor, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_hollow_gguf(
    path: Path, fields: Mapping[str, Any], matrices: FormatName, arch: str
) -> Path:
    """A GGUF file of any size that takes no room: the tensors of the model are holes in it.

    Its matrices are in one format; the output shares the embedding.
    """
    writer = gguf.GGUFWriter(path, arch)
    _add_fields(writer, fields)
    config = parse_gguf_config({"general.architecture": arch, **fields}, [], path.name, path.stem)
    for name, shape in expected_tensors(config).items():
        held = matrices if len(shape) > 1 else "f32"
        row_bytes = FORMATS[held].row_bytes(shape[-1])
        sizes, dtype = ((*shape[:-1], row_bytes), np.uint8) if len(shape) > 1 else (shape, "<f4")
        kind = gguf.GGMLQuantizationType[held.upper()]
        nbytes = math.prod(shape[:-1]) * row_bytes
        writer.add_tensor_info(gguf_name(name), sizes, np.dtype(dtype), nbytes, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    held_in = sum(-(-info.nbytes // ALIGNMENT) * ALIGNMENT for info in writer.tensors[0].values())
    start = -(-path.stat().st_size // ALIGNMENT) * ALIGNMENT
    os.truncate(path, start + held_in)
    return path


def _add_fields(writer: gguf.GGUFWriter, fields: Mapping[str, Any]) -> None:
    for key, value in fields.items():
        match value:
            case bool():
                writer.add_bool(key, value)
            case int():
                writer.add_uint32(key, value)
            case float():
                writer.add_float32(key, value)
            case str():
                writer.add_string(key, value)
            case _:
                writer.add_array(key, value)
