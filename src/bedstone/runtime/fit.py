"""Whether a manifest is for this device and this process's place among its ranks. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from bedstone.errors import CallerError, TargetError
from bedstone.spec.manifest import Manifest

Ranks = Mapping[str, tuple[int, int]]
"""This process's (index, size) in each rank group."""


def require_fit(manifest: Manifest, ranks: Ranks | None, misfits: Iterable[str]) -> None:
    """Refuse a manifest for another device or other ranks, with all that is wrong in one message.

    `misfits` is what the device says of the modules.
    Raises `TargetError`: modules do not run on the device.
    Raises `CallerError`: only the ranks are others.
    """
    refused, places = list(misfits), list(_rank_faults(manifest, ranks))
    if refused:
        raise TargetError("\n".join((*refused, *places)))
    if places:
        raise CallerError("\n".join(places))


def own_indices(manifest: Manifest, ranks: Ranks | None) -> dict[str, int]:
    """This process's index in each group of a manifest that fits."""
    return {name: (ranks or {})[name][0] for name in _groups(manifest)}


def _rank_faults(manifest: Manifest, ranks: Ranks | None) -> Iterator[str]:
    groups = _groups(manifest)
    if manifest.topology is not None and ranks is None:
        sizes = ", ".join(f"{name}={size}" for name, size in groups.items())
        yield f"the manifest declares a topology ({sizes}); load needs this rank's place in it"
        return
    for name, size in groups.items():
        fault = _rank_fault(size, (ranks or {}).get(name))
        if fault is not None:
            yield f"topology group `{name}`: {fault}"


def _rank_fault(size: int, place: tuple[int, int] | None) -> str | None:
    if place is None:
        return "no rank given"
    index, given = place
    if given != size:
        return f"manifest declares {size} members, rank given for {given}"
    return None if 0 <= index < size else f"rank {index} outside 0..{size}"


def _groups(manifest: Manifest) -> Mapping[str, int]:
    return manifest.topology.groups if manifest.topology else {}
