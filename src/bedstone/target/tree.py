"""Everything a tree of kernels may say wrongly, checked at once and without a compiler."""

from collections.abc import Iterator
from pathlib import Path

from bedstone.spec.record import RecordFault
from bedstone.target.collide import check_collisions
from bedstone.target.hardware import HardwareSet, read_sets
from bedstone.target.layout import check_layout
from bedstone.target.models import read_models
from bedstone.target.records import KERNELS, RecordError


def check_tree(kernels: Path = KERNELS) -> list[RecordFault]:
    """Every fault of every record and folder of a tree, each once."""
    try:
        sets = read_sets(kernels)
    except RecordError as error:
        return list(error.faults)
    faults = (fault for each in sets.values() for fault in _check_set(each, kernels))
    return list(dict.fromkeys(faults))


def _check_set(hardware: HardwareSet, kernels: Path) -> Iterator[RecordFault]:
    try:
        yield from check_layout(hardware, kernels)
        yield from check_collisions(read_models(hardware, kernels), kernels)
    except RecordError as error:
        yield from error.faults
