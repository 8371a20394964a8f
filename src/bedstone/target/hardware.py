"""Hardware sets: for which machine kernels are compiled, and the set each takes the rest from."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bedstone.errors import CallerError
from bedstone.spec.record import RecordFault, nearest
from bedstone.spec.target import HardwareRecord, Vendor
from bedstone.target.architecture import Form
from bedstone.target.records import (
    HARDWARE,
    KERNELS,
    RecordError,
    fault_in,
    read_record,
)

FORMS: dict[Vendor, Form] = {"cpu": "shared_object", "nvidia": "cubin"}
"""What a vendor's kernels are compiled to; who has none has no kernels."""


@dataclass(frozen=True, slots=True)
class HardwareSet:
    """One set; `parent` is the set it inherits what it does not hold itself from."""

    path: Path
    record: HardwareRecord
    parent: "HardwareSet | None"

    @property
    def name(self) -> str:
        """The set's name, which is its folder's."""
        return self.record.hardware.name

    @property
    def vendor(self) -> Vendor:
        """Whose compiler its kernels are for."""
        return self.record.hardware.vendor

    @property
    def arch(self) -> str:
        """The architecture, as the compiler is given it."""
        return self.record.hardware.arch

    @property
    def form(self) -> Form | None:
        """What its kernels are compiled to; None for a set that only holds models."""
        return FORMS.get(self.vendor)

    @property
    def chain(self) -> tuple["HardwareSet", ...]:
        """The set and those it inherits from, nearest first."""
        return (self, *(self.parent.chain if self.parent else ()))

    @property
    def features(self) -> frozenset[str]:
        """Every CPU feature that running it needs."""
        return frozenset(name for each in self.chain for name in each.record.hardware.features)


def read_sets(kernels: Path = KERNELS) -> dict[str, HardwareSet]:
    """Every hardware set of a tree, by name; a `RecordError` lists what is wrong with them all."""
    records, faults = _read_records(kernels)
    faults += list(_inheritance_faults(records, kernels))
    if faults:
        raise RecordError(faults)
    sets: dict[str, HardwareSet] = {}
    for name in records:
        _resolve(name, records, kernels, sets)
    return {name: sets[name] for name in records}


def find_set(name: str, sets: dict[str, HardwareSet]) -> HardwareSet:
    """The set of that name; a `CallerError` lists those there are."""
    if name in sets:
        return sets[name]
    meant = nearest(name, list(sets))
    known = ", ".join(f"`{other}`" for other, each in sets.items() if each.form is not None)
    hint = f"did you mean `{meant}`?" if meant else f"expected one of {known}"
    raise CallerError(f"no hardware set `{name}`: {hint}")


def _read_records(kernels: Path) -> tuple[dict[str, HardwareRecord], list[RecordFault]]:
    records: dict[str, HardwareRecord] = {}
    faults: list[RecordFault] = []
    for path in sorted(kernels.glob(f"*/{HARDWARE}")):
        try:
            records[path.parent.name] = read_record(path, HardwareRecord, kernels)
        except RecordError as error:
            faults += error.faults
    return records, faults


def _inheritance_faults(records: dict[str, HardwareRecord], kernels: Path) -> Iterator[RecordFault]:
    """Parents that are not there, are of another vendor, or lead back to the set."""
    for name, record in records.items():
        message = _inheritance_fault(name, record, records)
        if message is not None:
            path = kernels / name / HARDWARE
            yield fault_in(path, kernels, ("hardware", "inherits"), message)


def _inheritance_fault(
    name: str, record: HardwareRecord, records: dict[str, HardwareRecord]
) -> str | None:
    parent = record.hardware.inherits
    if parent is None:
        return None
    if parent not in records:
        return f"no usable hardware set `{parent}`"
    vendor = records[parent].hardware.vendor
    if vendor not in {"any", record.hardware.vendor}:
        return f"`{parent}` is of vendor `{vendor}`, expected `{record.hardware.vendor}` or `any`"
    seen = [name]
    while parent is not None and parent in records:
        if parent in seen:
            return f"`{name}` inherits from itself: {' -> '.join((*seen, parent))}"
        seen.append(parent)
        parent = records[parent].hardware.inherits
    return None


def _resolve(
    name: str, records: dict[str, HardwareRecord], kernels: Path, sets: dict[str, HardwareSet]
) -> HardwareSet:
    if name not in sets:
        inherits = records[name].hardware.inherits
        parent = None if inherits is None else _resolve(inherits, records, kernels, sets)
        sets[name] = HardwareSet(kernels / name, records[name], parent)
    return sets[name]
