"""The safetensors header is untrusted: what does not tile the data exactly is refused."""

import json
import os

import numpy as np
import pytest
import safetensors

from bedstone.checkpoint.dequant import dequantize
from bedstone.checkpoint.safetensors import HEADER_LIMIT, read_safetensors
from bedstone.checkpoint.tensors import Maps
from bedstone.errors import BedstoneError, WeightError
from checkpoint_files import f32, write_header, write_safetensors


def entry(begin, end, shape=None, dtype="F32"):
    shape = [(end - begin) // 4] if shape is None else shape
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def values(file, name):
    info = file.tensors[name]
    return dequantize(Maps().raw(info), info.format, info.shape)


@pytest.mark.parametrize(
    ("header", "size", "message"),
    [
        ({"a": entry(0, 8), "b": entry(4, 12)}, 12, "overlaps"),
        ({"a": entry(0, 8), "b": entry(0, 8)}, 8, "overlaps"),
        ({"a": entry(0, 4), "b": entry(8, 12)}, 12, "leaves a hole behind tensor 'a'"),
        ({"a": entry(0, 4)}, 8, "4 bytes behind its last tensor"),
    ],
)
def test_b09_ranges_that_do_not_tile_are_refused(tmp_path, header, size, message):
    path = write_header(tmp_path / "x.safetensors", header, bytes(size))
    with pytest.raises(WeightError, match=message):
        read_safetensors(path)
    with pytest.raises(safetensors.SafetensorError):
        safetensors.safe_open(path, "np")


def test_b09_the_order_in_the_header_is_free(tmp_path):
    header = {"b": entry(4, 8), "a": entry(0, 4)}
    file = read_safetensors(write_header(tmp_path / "x.safetensors", header, f32(1, 2)))
    assert values(file, "a") == [1.0]
    assert values(file, "b") == [2.0]


@pytest.mark.parametrize(
    ("tensor", "data", "message"),
    [
        (entry(0, 4, [1000, 1000]), bytes(4), r"takes 4000000 bytes, its data_offsets hold 4"),
        (entry(0, 0, [1 << 62, 4]), b"", "its size overflows 64 bits"),
    ],
)
def test_b11_a_shape_larger_than_its_bytes_is_refused(tmp_path, tensor, data, message):
    path = write_header(tmp_path / "x.safetensors", {"a": tensor}, data)
    with pytest.raises(WeightError, match=message):
        read_safetensors(path)


def test_b12_a_huge_header_is_told_from_a_short_file(tmp_path):
    path = tmp_path / "x.safetensors"
    length = 132095296
    path.write_bytes(length.to_bytes(8, "little"))
    with pytest.raises(WeightError, match=f"truncated: its header takes {length} bytes, 0 follow"):
        read_safetensors(path)
    os.truncate(path, 8 + length)
    with pytest.raises(WeightError, match=f"{length} bytes, the limit is {HEADER_LIMIT}: split"):
        read_safetensors(path)


def test_b13_empty_tensors_and_scalars_keep_their_shapes(tmp_path):
    entries = {
        "e": ("F32", [0], b""),
        "f": ("F32", [2, 0], b""),
        "s": ("F32", [], f32(1.5)),
    }
    file = read_safetensors(write_safetensors(tmp_path / "x.safetensors", entries))
    assert {name: info.shape for name, info in file.tensors.items()} == {
        "e": (0,), "f": (2, 0), "s": (),
    }  # fmt: skip
    assert values(file, "s").shape == ()
    assert values(file, "s") == 1.5
    assert values(file, "f").shape == (2, 0)


def test_b20_bfloat16_is_read_without_torch(tmp_path):
    entries = {"w": ("BF16", [2], bytes.fromhex("803f00c0"))}
    file = read_safetensors(write_safetensors(tmp_path / "x.safetensors", entries))
    assert values(file, "w").tolist() == [1.0, -2.0]
    assert values(file, "w").dtype == np.float32


def test_b20_other_element_types_are_kept_by_name(tmp_path):
    entries = {"w": ("F8_E4M3", [2], b"\x38\x40"), "n": ("F2_NEW", [7], b"abc")}
    file = read_safetensors(write_safetensors(tmp_path / "x.safetensors", entries))
    assert file.tensors == {}
    assert file.foreign == {"w": "F8_E4M3", "n": "F2_NEW"}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"[]", "holds a list, expected an object"),
        (b"{", "not valid JSON"),
        (b"\xff", "not valid JSON"),
        (b'{"a": {}, "a": {}}', "key 'a' twice"),
        (b'{"a": {"dtype": "F32", "dtype": "F16"}}', "key 'dtype' twice"),
        (b'{"a": ' * 100_000, "nested too deeply"),
        (rb'{"\ud800": 1}', "not valid JSON"),
        (b'{"a": 1}', "expected an object of dtype, shape and data_offsets"),
        (b'{"__metadata__": {"a": 1}}', "not an object of strings"),
        ({"a": entry(0, 4) | {"extra": 1}}, "expected an object of"),
        ({"a": entry(0, 4, dtype=3)}, "dtype 3, expected a string"),
        ({"a": entry(0, 4, [-1])}, "expected a list of sizes"),
        ({"a": entry(0, 4, [True])}, "expected a list of sizes"),
        ({"a": entry(0, 4, [1.0])}, "expected a list of sizes"),
        ({"a": entry(0, 4, [1] * 65)}, "has 65 dimensions"),
        ({"a": entry(4, 0, [1])}, r"expected \[begin, end\]"),
        ({"a": entry(0, 3, [3], "F4")}, "takes 1 bytes"),
        ({"a": entry(0, 8)}, "truncated: its tensors take 8 bytes, 4 follow"),
    ],
)
def test_a_faulty_header_is_refused(tmp_path, header, message):
    path = write_header(tmp_path / "x.safetensors", header, bytes(4))
    with pytest.raises(WeightError, match=message):
        read_safetensors(path)


def test_an_absent_or_empty_file_is_refused(tmp_path):
    with pytest.raises(WeightError, match="cannot be read"):
        read_safetensors(tmp_path / "none")
    (tmp_path / "empty").touch()
    with pytest.raises(WeightError, match="0 bytes hold no header length"):
        read_safetensors(tmp_path / "empty")


def good_file(folder):
    entries = {"a": ("F32", [2, 2], f32(1, 2, 3, 4)), "b": ("BF16", [3], bytes(6))}
    return write_safetensors(folder / "x.safetensors", entries)


def test_a_file_cut_anywhere_is_refused(tmp_path):
    path = good_file(tmp_path)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(WeightError):
            read_safetensors(path)


def test_a_flipped_byte_never_crashes_the_reader(tmp_path):
    path = good_file(tmp_path)
    whole = path.read_bytes()
    rng = np.random.default_rng(5)
    refused = 0
    for _ in range(400):
        flipped = bytearray(whole)
        flipped[rng.integers(len(whole) - 22)] ^= rng.integers(1, 256)
        path.write_bytes(flipped)
        try:
            file = read_safetensors(path)
        except BedstoneError:
            refused += 1
            continue
        for name in file.tensors:
            values(file, name)
    assert refused > 200


def test_a_map_outlives_a_close_and_notices_a_shrunk_file(tmp_path):
    path = good_file(tmp_path)
    info = read_safetensors(path).tensors["a"]
    maps = Maps()
    view = maps.raw(info)
    assert not view.flags.writeable
    assert not view.flags.owndata
    maps.close()
    assert view.view("<f4").tolist() == [1, 2, 3, 4]
    header = json.dumps({}).encode()
    write_header(path, header)
    with pytest.raises(WeightError, match="changed after it was opened"):
        maps.raw(info)
