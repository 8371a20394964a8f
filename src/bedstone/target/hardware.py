"""The hardware sets that ship as data: where their sources lie and the flags they compile with."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from bedstone.errors import TargetError

KERNELS_ROOT = Path(__file__).resolve().parent.parent / "kernels"
_FILE = "HARDWARE.toml"


@dataclass(frozen=True, slots=True)
class Hardware:
    """One set: `folders` to look a file up in, its own first; `flags` to compile with."""

    name: str
    folders: tuple[Path, ...]
    flags: tuple[str, ...]

    def source(self, file: str) -> Path:
        """The nearest file of that name.

        Raises:
            TargetError: No folder of the set has it.
        """
        for folder in self.folders:
            if (folder / file).exists():
                return folder / file
        raise TargetError(f"hardware set `{self.name}` has no source `{file}`")


def read_hardware(name: str, root: Path = KERNELS_ROOT) -> Hardware:
    """The set `name` with what it inherits.

    Raises:
        TargetError: There is no such set, or its record does not say what is expected of one.
    """
    folder = root / name
    if not (folder / _FILE).exists():
        known = ", ".join(f"`{path.parent.name}`" for path in sorted(root.glob(f"*/{_FILE}")))
        raise TargetError(f"no hardware set `{name}`: expected one of {known}")
    record = tomllib.loads((folder / _FILE).read_text())
    if record.keys() - {"name", "inherits", "flags"} or record.get("name") != name:
        raise TargetError(
            f"hardware set `{name}`: `{_FILE}` holds {sorted(record)} for `{record.get('name')}`, "
            "expected `name`, `inherits` and `flags` for itself"
        )
    own = tuple(record.get("flags", ()))
    if "inherits" not in record:
        return Hardware(name, (folder,), own)
    parent = read_hardware(record["inherits"], root)
    return Hardware(name, (folder, *parent.folders), (*parent.flags, *own))
