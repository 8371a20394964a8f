"""What the folders of a tree of kernels may hold, and which files hide inherited ones.

A file that stands in the place of an inherited one must be declared, with a reason, in the record
of its folder; so nothing is hidden by accident, and no declaration outlives what it was for.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bedstone.spec.dtype import FORMATS
from bedstone.spec.record import RecordFault, nearest
from bedstone.target.hardware import HardwareSet
from bedstone.target.models import SHARED, folders, quantization_folders
from bedstone.target.records import HARDWARE, KERNEL, MODEL, fault_in, shown_path
from bedstone.target.sources import HEADERS, SOURCES, Layer, read_layer


def check_layout(hardware: HardwareSet, kernels: Path) -> Iterator[RecordFault]:
    """Faults of a set's own folders; a `RecordError` where one of their records is broken."""
    own = sorted(path for path in hardware.path.glob("[!._]*") if path.is_dir())
    for folder in own:
        if folder.name == SHARED:
            yield from _check_folder(folder, _inherited_shared(hardware), kernels)
        elif any((each.path / folder.name / MODEL).is_file() for each in hardware.chain):
            yield from _check_model(hardware, folder, kernels)
        else:
            message = f"no model: neither it nor an inherited set has `{folder.name}/{MODEL}`"
            yield _fault(folder, kernels, message)
    strays = {path.name for path in hardware.path.iterdir() if path.is_file()} - {HARDWARE}
    for name in sorted(strays):
        message = f"expected only `{HARDWARE}` here, sources in `{SHARED}`"
        yield _fault(hardware.path / name, kernels, message)


def _check_model(hardware: HardwareSet, folder: Path, kernels: Path) -> Iterator[RecordFault]:
    inherited = [path for path in folders(hardware, folder.name, None) if path != folder]
    yield from _check_folder(folder, inherited, kernels)
    for leaf in quantization_folders(folder):
        if leaf.name not in FORMATS:
            meant = nearest(leaf.name, list(FORMATS))
            hint = f"did you mean `{meant}`?" if meant else f"known are {', '.join(FORMATS)}"
            yield _fault(leaf, kernels, f"no quantization: {hint}")
        inherited = [path for path in folders(hardware, folder.name, leaf.name) if path != leaf]
        yield from _check_folder(leaf, inherited, kernels)


def _inherited_shared(hardware: HardwareSet) -> list[Path]:
    """The folders whose files a set's shared ones may hide: all of the sets it inherits from."""
    return [
        folder
        for each in hardware.chain[1:]
        for folder in (each.path / SHARED, *sorted(each.path.glob("*/*/")))
    ]


def _check_folder(folder: Path, inherited: list[Path], kernels: Path) -> Iterator[RecordFault]:
    layer = read_layer(folder, kernels)
    own = {path.name: _identity(path) for path in _files(folder)}
    yield from _stray_faults(folder, own, kernels)
    theirs = {_identity(path) for each in inherited for path in _files(each)}
    hiding = {name for name, identity in own.items() if identity in theirs}
    yield from _declaration_faults(layer, hiding, kernels)


def _stray_faults(folder: Path, own: dict[str, str | None], kernels: Path) -> Iterator[RecordFault]:
    for name, identity in own.items():
        if identity is None:
            yield _fault(folder / name, kernels, "no kernel source, header or record")
    for identity, count in Counter(own.values()).items():
        if identity is not None and count > 1:
            yield _fault(folder, kernels, f"{count} sources stand for `{identity}`, expected one")


def _declaration_faults(layer: Layer, hiding: set[str], kernels: Path) -> Iterator[RecordFault]:
    declared = layer.record.shadow
    for name in sorted(hiding - declared.keys()):
        message = f"hides an inherited file: declare it in `{KERNEL}` under [shadow], with a reason"
        yield _fault(layer.path / name, kernels, message)
    for name in declared:
        if name not in hiding:
            path = layer.path / KERNEL
            yield fault_in(path, kernels, ("shadow", name), "hides no inherited file: remove it")


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if p.is_file() and p.name != KERNEL)


def _identity(path: Path) -> str | None:
    """What a file stands for: a source its stem, a header or a model's record its name."""
    if path.suffix in SOURCES:
        return path.stem
    return path.name if path.suffix in HEADERS or path.name == MODEL else None


def _fault(path: Path, kernels: Path, message: str) -> RecordFault:
    return RecordFault(shown_path(path, kernels), (), None, message)
