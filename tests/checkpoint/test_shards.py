"""Which files hold a checkpoint: the index decides, what is missing is named."""

import json

import pytest

from bedstone.checkpoint.dequant import dequantize
from bedstone.checkpoint.shards import INDEX, read_shards
from bedstone.checkpoint.tensors import Maps
from bedstone.errors import WeightError
from checkpoint_files import f32, write_safetensors


def write_shards(folder, weight_map, files):
    for name, tensors in files.items():
        entries = {t: ("F32", [len(v)], f32(*v)) for t, v in tensors.items()}
        write_safetensors(folder / name, entries)
    if weight_map is not None:
        (folder / INDEX).write_text(json.dumps({"weight_map": weight_map}))
    return folder


def values(shards):
    return {
        name: dequantize(Maps().raw(info), info.format, info.shape).tolist()
        for name, info in shards.tensors.items()
    }


def test_b01_index_names_a_missing_shard(tmp_path):
    table = {"a": "m-1.safetensors", "b": "m-2.safetensors", "c": "m-2.safetensors"}
    write_shards(tmp_path, table, {"m-1.safetensors": {"a": [1]}})
    with pytest.raises(
        WeightError,
        match=r"names 1 missing file \(m-2.safetensors\), 2 tensors affected \(b, c\)",
    ):
        read_shards(tmp_path)


def test_b02_a_stray_file_beside_the_shards_is_only_noted(tmp_path):
    files = {"m-1.safetensors": {"w": [1]}, "consolidated.safetensors": {"w": [9, 9]}}
    shards = read_shards(write_shards(tmp_path, {"w": "m-1.safetensors"}, files))
    assert values(shards) == {"w": [1.0]}
    assert [n for n in shards.notes if "`consolidated.safetensors` is not read" in n]


def test_b02_without_an_index_two_holders_of_a_tensor_are_refused(tmp_path):
    files = {"m-1.safetensors": {"w": [1]}, "consolidated.safetensors": {"w": [9, 9]}}
    write_shards(tmp_path, None, files)
    with pytest.raises(
        WeightError, match=r"`w` is in both `consolidated.safetensors` and `m-1.safetensors`"
    ):
        read_shards(tmp_path)


def test_b02_without_an_index_the_usual_name_decides(tmp_path):
    files = {"model.safetensors": {"w": [1]}, "consolidated.safetensors": {"w": [9, 9]}}
    shards = read_shards(write_shards(tmp_path, None, files))
    assert values(shards) == {"w": [1.0]}
    assert shards.notes == ("`consolidated.safetensors` is not read: `model.safetensors` decides",)


def test_files_that_share_no_tensor_are_joined(tmp_path):
    files = {"one.safetensors": {"v": [1]}, "two.safetensors": {"w": [2]}}
    shards = read_shards(write_shards(tmp_path, None, files))
    assert values(shards) == {"v": [1.0], "w": [2.0]}


@pytest.mark.parametrize("late", ["m-2.safetensors", "m-0.safetensors"])
def test_b03_the_index_decides_between_two_copies(tmp_path, late):
    files = {"m-1.safetensors": {"w": [1], "v": [2]}, late: {"w": [7]}}
    table = {"w": late, "v": "m-1.safetensors"}
    shards = read_shards(write_shards(tmp_path, table, files))
    assert values(shards) == {"w": [7.0], "v": [2.0]}
    assert shards.notes == (
        f"`m-1.safetensors` has an unindexed copy of tensor `w`; `{late}` serves",
    )


def test_a_tensor_that_its_file_does_not_hold_is_named(tmp_path):
    table = {"w": "m.safetensors", "x": "m.safetensors"}
    write_shards(tmp_path, table, {"m.safetensors": {"w": [1]}})
    with pytest.raises(WeightError, match=r"places 1 tensors .* \(x in m.safetensors\)"):
        read_shards(tmp_path)


@pytest.mark.parametrize("file", ["../m.safetensors", "/m.safetensors", "a\\m", "", ".", "..", 3])
def test_an_index_does_not_leave_the_directory(tmp_path, file):
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"w": file}}))
    with pytest.raises(WeightError, match="expected the name of a file beside it"):
        read_shards(tmp_path)


def test_a_name_that_no_file_can_have_is_a_missing_file(tmp_path):
    write_shards(tmp_path, {"a": "x" * 5000}, {})
    with pytest.raises(WeightError, match=r"names 1 missing file \(x{200}\), 1 tensor affected"):
        read_shards(tmp_path)


@pytest.mark.parametrize("text", ["{}", '{"weight_map": []}', '{"weight_map": {}}'])
def test_an_index_without_a_table_is_refused(tmp_path, text):
    (tmp_path / INDEX).write_text(text)
    with pytest.raises(WeightError, match="has no `weight_map`"):
        read_shards(tmp_path)


def test_an_empty_directory_is_refused(tmp_path):
    with pytest.raises(WeightError, match=r"no `.safetensors` file"):
        read_shards(tmp_path)
