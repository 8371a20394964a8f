"""The files one target is compiled from: layers of folders, where a nearer file hides a farther."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bedstone.errors import TargetError
from bedstone.spec.target import KernelRecord
from bedstone.target.audit import Absence
from bedstone.target.hardware import HardwareSet
from bedstone.target.models import SHARED, Model, folders
from bedstone.target.records import KERNEL, KERNELS, read_record, shown_path
from bedstone.target.toolchain import Unit


@dataclass(frozen=True, slots=True)
class Layer:
    """One folder of kernel files and what its record says."""

    path: Path
    record: KernelRecord


@dataclass(frozen=True, slots=True)
class Sources:
    """What a target's modules are compiled from; `layers` stand nearest first.

    `flags` are those of every layer and every set it inherits from, the farthest first.
    """

    hardware: HardwareSet
    layers: tuple[Layer, ...]
    flags: tuple[str, ...]
    root: Path

    @property
    def folders(self) -> tuple[Path, ...]:
        """Every folder a file may come from, nearest first."""
        return tuple(layer.path for layer in self.layers)

    @property
    def include(self) -> tuple[Path, ...]:
        """Where headers are looked for: what no header lies in changes no module."""
        return tuple(p for p in self.folders if any(f.suffix in HEADERS for f in p.iterdir()))

    def source(self, name: str) -> Path:
        """The file that counts of those that stand for the source `name`.

        A `TargetError` where no folder of the target holds one.
        """
        found = next(self._candidates(name), None)
        if found is None:
            raise TargetError(f"hardware set `{self.hardware.name}` has no kernel source `{name}`")
        return found

    def hidden(self, name: str) -> Path | None:
        """The inherited file that the one which counts stands in the place of, if any."""
        standing = list(self._candidates(name))
        return standing[1] if len(standing) > 1 else None

    def unit(self, source: str, defines: Mapping[str, str]) -> Unit:
        """What one module is compiled from."""
        return Unit((self.source(source),), self.flags, defines, self.include)

    def hidden_unit(self, source: str, defines: Mapping[str, str]) -> Unit | None:
        """What the module would be compiled from, did no nearer file hide the inherited one."""
        hidden = self.hidden(source)
        return None if hidden is None else Unit((hidden,), self.flags, defines, self.include)

    def absences(self) -> Iterator[Absence]:
        """Every entry, or pattern of entries, that the target is expected to lack."""
        for at, layer in enumerate(self.layers):
            where = shown_path(layer.path / KERNEL, self.root)
            for pattern, reason in layer.record.expected_absent.items():
                yield Absence(pattern, reason, where, own=at == 0)

    def _candidates(self, name: str) -> Iterator[Path]:
        """The files of one stem, nearest first."""
        stem = Path(name).stem
        for layer in self.layers:
            yield from (p for p in sorted(layer.path.glob(f"{stem}.*")) if p.suffix in SOURCES)


SOURCES = frozenset({".c", ".cu", ".py"})
"""How files end that modules are compiled from: they stand for each other by stem."""

HEADERS = frozenset({".h", ".cuh"})
"""How files end that sources include: they stand for each other by name."""


def read_sources(
    hardware: HardwareSet,
    model: Model | None = None,
    quantization: str | None = None,
    kernels: Path = KERNELS,
) -> Sources:
    """The files of a target; without a model those that serve every one.

    A `RecordError` lists what is wrong with the record of a folder.
    """
    paths = [each.path / SHARED for each in hardware.chain]
    if model is not None:
        paths = list(folders(hardware, model.kernels, quantization))
    layers = tuple(read_layer(path, kernels) for path in paths if _says_something(path))
    sets = [each.record.build.flags for each in reversed(hardware.chain)]
    flags = (*sets, *(layer.record.build.flags for layer in reversed(layers)))
    return Sources(hardware, layers, tuple(flag for part in flags for flag in part), kernels)


def _says_something(folder: Path) -> bool:
    """Whether a folder holds anything that a compile could use: one of a model may not."""
    return any(p.name == KERNEL or p.suffix in SOURCES | HEADERS for p in folder.glob("*.*"))


def read_layer(path: Path, kernels: Path) -> Layer:
    """A folder with its record; one without a record says nothing."""
    record = path / KERNEL
    if not record.is_file():
        return Layer(path, KernelRecord())
    return Layer(path, read_record(record, KernelRecord, kernels))
