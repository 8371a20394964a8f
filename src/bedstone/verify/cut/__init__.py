"""A manifest cut into the stages of a pipeline.

Every program with a `batch` is cut before the same call indices. Each stage is a manifest of its
own; run in order, each copying what crosses into the next, they do what the whole does.
"""

from collections.abc import Iterable, Sequence

from bedstone.errors import ManifestError
from bedstone.spec.codec import serialize
from bedstone.spec.fault import Fault
from bedstone.spec.manifest import Cut, Manifest
from bedstone.verify.cut.identity import cut_id
from bedstone.verify.cut.pipeline import Pipeline, Request
from bedstone.verify.cut.rules import PIPELINE_ROWS, REQUEST_ROWS
from bedstone.verify.cut.stage import stage_manifest
from bedstone.verify.rule import judge, rules_of
from bedstone.verify.verdict import check
from bedstone.verify.verified import Verified

CUT_RULES = (*rules_of(REQUEST_ROWS), *rules_of(PIPELINE_ROWS))

__all__ = ["CUT_RULES", "cut"]


def cut(verified: Verified, at: Sequence[int]) -> tuple[Manifest, ...]:
    """The stages of a manifest cut before each call index of `at`, first to last.

    Where it cannot be cut there, a `ManifestError` lists every fault, one a line.
    """
    manifest = verified.manifest
    request = Request(manifest, tuple(at))
    _require(manifest, judge(REQUEST_ROWS, request))
    pipeline = Pipeline.of(request)
    _require(manifest, judge(PIPELINE_ROWS, pipeline))
    name, count = cut_id(serialize(manifest).encode(), request.at), len(pipeline.stages)
    stages = tuple(
        stage_manifest(manifest, stage, Cut(name, stage.index, count)) for stage in pipeline.stages
    )
    _require(manifest, (fault for stage in stages for fault in _stage_faults(stage)))
    return stages


def _stage_faults(stage: Manifest) -> Iterable[Fault]:
    index = stage.cut.stage if stage.cut else 0
    for fault in check(stage):
        yield Fault(fault.rule, fault.path, fault.objects, f"stage {index}: {fault.message}")


def _require(manifest: Manifest, faults: Iterable[Fault]) -> None:
    lines = "".join(f"\n  - {fault}" for fault in faults)
    if lines:
        raise ManifestError(f"manifest `{manifest.model}` cannot be cut there:{lines}")
