"""Hardware sets: folders of kernel sources, where a set holds only what differs from another."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bedstone.errors import TargetError
from bedstone.target.toolchain import Unit

KERNELS = Path(__file__).parent.parent / "kernels"


@dataclass(frozen=True, slots=True)
class Hardware:
    """One set: its folders, its own first, and the compiler flags of all of them in base order."""

    name: str
    folders: tuple[Path, ...]
    flags: tuple[str, ...]

    def source(self, name: str) -> Path:
        """The set's file of that name: its own, else the nearest inherited one.

        Raises `TargetError`: no folder of the set holds it.
        """
        for folder in self.folders:
            if (folder / name).is_file():
                return folder / name
        raise TargetError(f"hardware set `{self.name}` has no kernel source `{name}`")

    def unit(self, source: str, defines: Mapping[str, str]) -> Unit:
        """What the shared object of one module is compiled from."""
        return Unit((self.source(source),), self.flags, defines, self.folders)


def read_hardware(name: str, kernels: Path = KERNELS) -> Hardware:
    """The hardware set `name` with all that it inherits.

    Raises `TargetError`: no such set, or a record that does not say what it must.
    """
    record_file = kernels / name / "HARDWARE.toml"
    if not record_file.is_file():
        known = ", ".join(
            f"`{path.parent.name}`" for path in sorted(kernels.glob("*/HARDWARE.toml"))
        )
        raise TargetError(f"unknown hardware set `{name}`: expected one of {known}")
    record = tomllib.loads(record_file.read_text())
    if record.get("name") != name or not isinstance(record.get("flags"), list):
        raise TargetError(f"`{record_file}`: expected name = `{name}` and a list of flags")
    parent = read_hardware(record["inherits"], kernels) if "inherits" in record else None
    return Hardware(
        name,
        (record_file.parent, *(parent.folders if parent else ())),
        (*(parent.flags if parent else ()), *record["flags"]),
    )
