"""A stage as a manifest of its own: what it uses, and the doors to its neighbours."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from bedstone.spec.manifest import Buffer, Cut, Domain, Manifest, State
from bedstone.verify.cut.pipeline import Stage
from bedstone.verify.cut.touches import written
from bedstone.verify.uses import Uses

ValueT = TypeVar("ValueT")


def stage_manifest(manifest: Manifest, stage: Stage, cut: Cut) -> Manifest:
    """The manifest of `stage`: its programs, and of every other section what they use."""
    staged = replace(manifest, programs=stage.programs, cut=cut)
    used = Uses.of(staged)
    states = _kept(manifest.states, "state", used)
    kept = _kept(manifest.buffers, "buffer", used)
    buffers = {
        name: replace(
            _doored(stage, name, buffer, manifest),
            domain=_pointed(buffer.domain, manifest.states, states, kept),
        )
        for name, buffer in kept.items()
    }
    ops = _kept(manifest.ops, "op", used)
    pruned = replace(staged, states=states, buffers=buffers, ops=ops)
    left = Uses.of(pruned)
    return replace(
        pruned,
        vars=_kept(manifest.vars, "var", left),
        modules=_kept(manifest.modules, "module", left),
    )


def _kept(section: Mapping[str, ValueT], kind: str, used: Uses) -> dict[str, ValueT]:
    unused = set(used.unused(kind, section))
    return {name: value for name, value in section.items() if name not in unused}


def _doored(stage: Stage, name: str, buffer: Buffer, manifest: Manifest) -> Buffer:
    """A crossing buffer as its side of the edge declares it.

    What arrives is exported, so that the stage before can copy into it.
    """
    if name in stage.arrives:
        calls = (call for program in stage.programs.values() for call in program.calls)
        rewritten = name in written(manifest.ops, calls)
        return replace(buffer, kind="inout" if rewritten else "input", export=True)
    if name in stage.leaves:
        return replace(buffer, kind="output", export=False)
    return buffer


def _pointed(
    domain: Domain | None,
    states: Mapping[str, State],
    kept: Mapping[str, State],
    buffers: Collection[str],
) -> Domain | None:
    """The domain with its index moved to a state the stage has: the first of the same sort.

    Paged states share their page ids and per-sequence states their slots, so the values stay
    right. Where no such state is left, nor the buffer it indexes, the domain goes.
    """
    target = domain.index_into if domain else None
    if domain is None or target is None or target in kept or target in buffers:
        return domain
    alike = (
        n for n in sorted(kept) if target in states and _sort(kept[n]) == _sort(states[target])
    )
    other = next(alike, None)
    return replace(domain, index_into=other) if other else None


def _sort(state: State) -> tuple[bool, bool, bool]:
    return state.bytes_per_token > 0, state.bytes_per_seq > 0, state.host is not None
