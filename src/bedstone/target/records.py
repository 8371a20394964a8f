"""Record files of a tree of kernels, and what a type alone cannot say of one record."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from bedstone.errors import TargetError
from bedstone.spec.record import Key, RecordFault, locate, parse_record
from bedstone.spec.target import HardwareRecord, KernelRecord, ModelRecord
from bedstone.target.architecture import parse_arch

KERNELS = Path(__file__).parent.parent / "kernels"
"""The tree that Bedstone brings along."""

HARDWARE, KERNEL, MODEL = "HARDWARE.toml", "KERNEL.toml", "MODEL.toml"

RecordT = TypeVar("RecordT", bound=Struct)
Misfits = Iterator[tuple[Key, str]]

_WORD = re.compile(r"[a-z0-9]+")


class RecordError(TargetError):
    """Whoever wrote the records must act: `faults` says where they are wrong."""

    def __init__(self, faults: Sequence[RecordFault]) -> None:
        super().__init__(faults)
        self.faults = tuple(faults)

    def __str__(self) -> str:
        return "\n".join(map(str, self.faults))


def read_record(path: Path, kind: type[RecordT], root: Path) -> RecordT:
    """The record in the file `path` of the tree `root`; a `RecordError` lists all that is wrong."""
    where, text = shown_path(path, root), _text(path, root)
    parsed = parse_record(text, kind, where)
    if isinstance(parsed, tuple):
        raise RecordError(parsed)
    faults = locate(text, where, _CHECKS[kind](parsed, path))
    if faults:
        raise RecordError(faults)
    return parsed


def fault_in(path: Path, root: Path, key: Key, message: str) -> RecordFault:
    """A fault of one key of a record file that was read before."""
    return locate(_text(path, root), shown_path(path, root), [(key, message)])[0]


def shown_path(path: Path, root: Path) -> str:
    """A path as messages name it: from the tree's own folder on."""
    return path.relative_to(root.parent).as_posix()


def words(text: str) -> tuple[str, ...]:
    """The letters and digits of a name, lower-cased and cut at everything else."""
    return tuple(_WORD.findall(text.lower()))


def _text(path: Path, root: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fault = RecordFault(shown_path(path, root), (), None, f"cannot be read: {error}")
        raise RecordError([fault]) from error


def _check_hardware(record: HardwareRecord, path: Path) -> Misfits:
    hardware, folder = record.hardware, path.parent.name
    if hardware.name != folder:
        message = f"expected the folder's name `{folder}`, found `{hardware.name}`"
        yield ("hardware", "name"), message
    if hardware.features and hardware.vendor != "cpu":
        message = f"expected none for vendor `{hardware.vendor}`, found {len(hardware.features)}"
        yield ("hardware", "features"), message
    if hardware.vendor == "nvidia" and parse_arch(hardware.arch) is None:
        message = f"expected an architecture such as `sm_90a`, found `{hardware.arch}`"
        yield ("hardware", "arch"), message


def _check_kernel(record: KernelRecord, path: Path) -> Misfits:
    for name in record.shadow:
        if not (path.parent / name).is_file():
            yield ("shadow", name), "expected a file of this folder, found none"


def _check_model(record: ModelRecord, _: Path) -> Misfits:
    routing = record.routing
    if not routing.model_types:
        yield ("routing", "model_types"), "expected a model type, found none"
    for at, row in enumerate(routing.model_types):
        if row in routing.model_types[:at]:
            yield ("routing", "model_types", at), f"`{row.model_type}` is there twice"
    for at, name in enumerate(routing.match_names):
        if not words(name):
            message = f"expected letters or digits, found `{name}`: it would match every name"
            yield ("routing", "match_names", at), message
    if record.policy.sampling.tools.penalized:
        message = "expected no penalty: a tool call repeats what its schema and the turn hold"
        yield ("policy", "sampling", "tools"), message


_CHECKS: dict[type, Callable[[Any, Path], Misfits]] = {
    HardwareRecord: _check_hardware,
    KernelRecord: _check_kernel,
    ModelRecord: _check_model,
}
