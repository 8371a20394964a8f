"""The safetensors files of a directory: which of them hold the checkpoint, and which tensor where.

An index (`model.safetensors.index.json`) decides alone: a tensor is read from the file it names, a
copy elsewhere is noted, a file it does not name is not opened. Without an index a lone file, or
`model.safetensors` beside others, is the checkpoint; several files must not share a name.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bedstone.checkpoint.json_text import read_object
from bedstone.checkpoint.safetensors import read_safetensors
from bedstone.checkpoint.tensors import TensorInfo, WeightFile
from bedstone.errors import WeightError

INDEX = "model.safetensors.index.json"
LONE = "model.safetensors"
SHOWN_NAMES = 8
SHOWN_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Shards:
    """The files of a checkpoint, its tensors, and what is worth a note about them."""

    files: tuple[WeightFile, ...]
    tensors: Mapping[str, TensorInfo]
    foreign: Mapping[str, str]
    notes: tuple[str, ...] = ()


def read_shards(folder: Path) -> Shards:
    """Read the headers of the safetensors files that make up the checkpoint in `folder`.

    Raises `WeightError` where there is none, a file is missing, or two files hold one tensor.
    """
    if (folder / INDEX).exists():
        return _read_indexed(folder)
    present = sorted(path for path in folder.glob("*.safetensors"))
    lone = folder / LONE
    if lone in present:
        strays = [path.name for path in present if path != lone]
        return _joined([read_safetensors(lone)], _stray_notes(strays, LONE))
    if not present:
        raise WeightError(f"`{folder}` holds no `{INDEX}` and no `.safetensors` file")
    return _joined([read_safetensors(path) for path in present], ())


def read_lone(path: Path) -> Shards:
    """Read the header of one safetensors file that is the whole checkpoint."""
    return _joined([read_safetensors(path)], ())


def parse_weight_map(index: Mapping[str, object], where: str) -> dict[str, str]:
    """The index's table from tensor name to file name.

    Raises `WeightError` where it is no such table, or a file name leaves the directory.
    """
    table = index.get("weight_map")
    if not isinstance(table, dict) or not table:
        raise WeightError(f"`{where}` has no `weight_map` of tensor names to file names")
    for name, file in table.items():
        if not isinstance(file, str) or not _is_plain(file):
            raise WeightError(
                f"`{where}` maps tensor {name!r} to {file!r}, expected the name of a file beside it"
            )
    return table


def _is_plain(file: str) -> bool:
    """Whether a file of that name can only lie in the directory itself."""
    return file not in {"", ".."} and Path(file).name == file and not set(file) & {"\\", "\0"}


def _read_indexed(folder: Path) -> Shards:
    where = str(folder / INDEX)
    table = parse_weight_map(read_object(folder / INDEX), where)
    names = sorted(set(table.values()))
    _require_present(folder, table, names)
    files = [read_safetensors(folder / name) for name in names]
    _require_indexed(table, files, where)
    tensors = {n: t for f in files for n, t in f.tensors.items() if table.get(n) == f.path.name}
    foreign = {n: d for f in files for n, d in f.foreign.items() if table.get(n) == f.path.name}
    strays = sorted(path.name for path in folder.glob("*.safetensors") if path.name not in names)
    notes = (*_copy_notes(table, files), *_stray_notes(strays, INDEX))
    return Shards(tuple(files), tensors, foreign, notes)


def _require_present(folder: Path, table: Mapping[str, str], names: list[str]) -> None:
    missing = [name for name in names if not os.path.exists(folder / name)]
    if not missing:
        return
    affected = sorted(tensor for tensor, file in table.items() if file in missing)
    raise WeightError(
        f"`{folder / INDEX}` names {len(missing)} missing file{'s'[: len(missing) > 1]} "
        f"({_listed(missing)}), {len(affected)} tensor{'s'[: len(affected) > 1]} affected "
        f"({_listed(affected)})"
    )


def _require_indexed(table: Mapping[str, str], files: list[WeightFile], where: str) -> None:
    held = {file.path.name: set(file.names) for file in files}
    absent = sorted(tensor for tensor, file in table.items() if tensor not in held[file])
    if absent:
        raise WeightError(
            f"`{where}` places {len(absent)} tensors in files that do not hold them "
            f"({_listed([f'{name} in {table[name]}' for name in absent])})"
        )


def _copy_notes(table: Mapping[str, str], files: list[WeightFile]) -> list[str]:
    return [
        f"`{file.path.name}` has an unindexed copy of tensor `{name}`; "
        + (f"`{table[name]}` serves" if name in table else "the index does not name it")
        for file in files
        for name in sorted(file.names)
        if table.get(name) != file.path.name
    ]


def _stray_notes(strays: list[str], decided: str) -> tuple[str, ...]:
    return tuple(f"`{name}` is not read: `{decided}` decides" for name in strays)


def _joined(files: list[WeightFile], notes: tuple[str, ...]) -> Shards:
    """All tensors of files that share no name."""
    home: dict[str, str] = {}
    for file in files:
        for name in file.names:
            if name in home:
                raise WeightError(
                    f"tensor `{name}` is in both `{home[name]}` and `{file.path.name}` of "
                    f"`{file.path.parent}`, which has no index to decide"
                )
            home[name] = file.path.name
    tensors = {name: info for file in files for name, info in file.tensors.items()}
    foreign = {name: dtype for file in files for name, dtype in file.foreign.items()}
    return Shards(tuple(files), tensors, foreign, notes)


def _listed(names: list[str]) -> str:
    more = len(names) - SHOWN_NAMES
    shown = ", ".join(name[:SHOWN_LENGTH] for name in names[:SHOWN_NAMES])
    return f"{shown} and {more} more" if more > 0 else shown
