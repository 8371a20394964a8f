"""The models a hardware set serves: its own and those of the sets it inherits from."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bedstone.spec.record import RecordFault, nearest
from bedstone.spec.target import ModelRecord
from bedstone.target.hardware import HardwareSet
from bedstone.target.records import KERNELS, MODEL, RecordError, fault_in, read_record

SHARED = "common"
"""The folder of the sources that serve every model of a set."""


@dataclass(frozen=True, slots=True)
class Model:
    """One model as a hardware set sees it.

    `kernels` is the model whose kernel folders serve it, `quantizations` those that have a folder
    there, in this set or one it inherits from.
    """

    name: str
    path: Path
    record: ModelRecord
    kernels: str
    quantizations: tuple[str, ...]


def read_models(hardware: HardwareSet, kernels: Path = KERNELS) -> dict[str, Model]:
    """The models of a set, by name; the nearest record of a name is the one that counts.

    A `RecordError` lists what is wrong with their records.
    """
    records: dict[str, tuple[Path, ModelRecord]] = {}
    faults: list[RecordFault] = []
    for path in _record_files(hardware):
        try:
            records[path.parent.name] = path, read_record(path, ModelRecord, kernels)
        except RecordError as error:
            faults += error.faults
    faults += _redirect_faults(records, kernels)
    if faults:
        raise RecordError(faults)
    return {
        name: _model(name, path, record, hardware)
        for name, (path, record) in sorted(records.items())
    }


def folders(hardware: HardwareSet, model: str, quantization: str | None) -> Iterator[Path]:
    """Where a target's files are looked for, nearest first."""
    for each in hardware.chain:
        if quantization is not None:
            yield each.path / model / quantization
        yield each.path / model
        yield each.path / SHARED


def quantization_folders(folder: Path) -> list[Path]:
    """The folders of a model's folder, each of a quantization."""
    return sorted(path for path in folder.glob("[!._]*") if path.is_dir())


def _record_files(hardware: HardwareSet) -> list[Path]:
    nearest_first: dict[str, Path] = {}
    for each in hardware.chain:
        for path in sorted(each.path.glob(f"*/{MODEL}")):
            nearest_first.setdefault(path.parent.name, path)
    return list(nearest_first.values())


def _redirect_faults(
    records: dict[str, tuple[Path, ModelRecord]], kernels: Path
) -> Iterator[RecordFault]:
    """A model whose kernels are another's must name one that has its own."""
    for path, record in records.values():
        wanted = record.routing.kernels
        if wanted is None:
            continue
        message = None
        if wanted not in records:
            meant = nearest(wanted, list(records))
            message = f"no model `{wanted}`" + (f": did you mean `{meant}`?" if meant else "")
        elif records[wanted][1].routing.kernels is not None:
            message = f"`{wanted}` takes its kernels from another model itself"
        if message is not None:
            yield fault_in(path, kernels, ("routing", "kernels"), message)


def _model(name: str, path: Path, record: ModelRecord, hardware: HardwareSet) -> Model:
    kernels = record.routing.kernels or name
    found = {
        folder.name
        for each in hardware.chain
        for folder in quantization_folders(each.path / kernels)
    }
    return Model(name, path, record, kernels, tuple(sorted(found)))
