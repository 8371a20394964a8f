"""Rules on where a manifest may be cut."""

from collections.abc import Iterator
from itertools import pairwise

from bedstone.verify.cut.pipeline import Pipeline, Request
from bedstone.verify.cut.touches import Region, touches
from bedstone.verify.rule import Finding, Rows, Rule, escape


def single_rank(request: Request) -> Iterator[Finding]:
    """A manifest to cut has no topology."""
    if request.manifest.topology is not None:
        yield Finding(
            "the manifest has a `topology`; a cut takes a single-rank manifest", "/topology", ()
        )


def whole(request: Request) -> Iterator[Finding]:
    """A manifest to cut is not a stage."""
    if request.manifest.cut is not None:
        yield Finding("the manifest is already a stage of a cut", "/cut", ())


def points(request: Request) -> Iterator[Finding]:
    """There is a cut point at least, and they increase from 1 on."""
    if not request.at or any(low >= high for low, high in pairwise((0, *request.at))):
        yield Finding(
            f"cut points {list(request.at)}, expected one at least, increasing, the first above 0",
            "",
            (),
        )


def driven(request: Request) -> Iterator[Finding]:
    """Some program has a `batch`."""
    if not request.driven:
        yield Finding("no program declares a `batch`: there is nothing to cut", "/programs", ())


def inside(request: Request) -> Iterator[Finding]:
    """Every cut point has calls on both sides in every driven program."""
    for name, program in request.driven.items():
        beyond = [point for point in request.at if point >= len(program.calls)]
        if beyond:
            yield Finding(
                f"program `{name}` has {len(program.calls)} calls; it cannot be cut before call "
                f"{beyond[0]}",
                f"/programs/{escape(name)}/calls",
                (f"program {name}",),
            )


def workspaces(pipeline: Pipeline) -> Iterator[Finding]:
    """Only a workspace crosses from one stage to the next."""
    buffers = pipeline.request.manifest.buffers
    for edge, crossing in zip(pipeline.request.at, pipeline.crossing, strict=True):
        for name, crosses in crossing.items():
            for buffer in sorted(crosses):
                kind = buffers[buffer].kind
                if kind != "workspace":
                    yield Finding(
                        f"program `{name}`: {kind} buffer `{buffer}` is live across the cut before "
                        f"call {edge}; only a workspace travels",
                        f"/programs/{escape(name)}/calls/{edge}",
                        (f"program {name}", f"buffer {buffer}"),
                    )


def results(pipeline: Pipeline) -> Iterator[Finding]:
    """Outputs and carries are written by the last stage."""
    buffers = pipeline.request.manifest.buffers
    for name in pipeline.request.driven:
        for buffer, index in _early_writes(pipeline, name).items():
            kind = buffers[buffer].kind
            if kind in {"output", "carry"}:
                yield Finding(
                    f"program `{name}` call {index} writes {kind} buffer `{buffer}` before the "
                    f"last stage; a pipeline's outputs come from its last stage",
                    f"/programs/{escape(name)}/calls/{index}",
                    (f"program {name}", f"buffer {buffer}"),
                )


def _early_writes(pipeline: Pipeline, name: str) -> dict[str, int]:
    """The buffers that a program writes before the last stage, each with the first call to."""
    request, first = pipeline.request, dict[str, int]()
    for index, call in enumerate(request.driven[name].calls[: request.at[-1]]):
        for touch in touches(request.manifest.ops, call):
            if touch.writes and touch.region.kind == "buffer":
                first.setdefault(touch.region.name, index)
    return first


def carried(pipeline: Pipeline) -> Iterator[Finding]:
    """A stage reads or writes whatever crosses it."""
    for stage in pipeline.stages:
        used = {touch.region for _, touch in stage.touches(pipeline.request.manifest)}
        for name in sorted(stage.arrives | stage.leaves):
            if Region("buffer", name) not in used:
                yield Finding(
                    f"stage {stage.index}: `{name}` passes through untouched; a stage carries "
                    f"only what it uses",
                    f"/buffers/{escape(name)}",
                    (f"buffer {name}",),
                )


def owned(pipeline: Pipeline) -> Iterator[Finding]:
    """A region of a state belongs to one stage, and so does an inout buffer that is written."""
    manifest = pipeline.request.manifest
    owner: dict[Region, int] = {}
    shared: set[Region] = set()
    written = {
        touch.region for s in pipeline.stages for _, touch in s.touches(manifest) if touch.writes
    }
    for stage in pipeline.stages:
        for name, touch in stage.touches(manifest):
            region = touch.region
            lasting = region.kind == "state" or (
                manifest.buffers[region.name].kind == "inout" and region in written
            )
            first = owner.setdefault(region, stage.index)
            if lasting and first != stage.index and region not in shared:
                shared.add(region)
                noun = "a state region" if region.kind == "state" else "a buffer kept between runs"
                yield Finding(
                    f"program `{name}`: {region} is touched by stages {first} and {stage.index}; "
                    f"{noun} belongs to one stage",
                    f"/programs/{escape(name)}",
                    (f"program {name}", f"{region.kind} {region.name}"),
                )


REQUEST_ROWS: Rows[Request] = (
    Rule("K-topology", "cut", single_rank),
    Rule("K-stage", "cut", whole),
    Rule("K-points", "cut", points),
    Rule("K-batch", "cut", driven),
    Rule("K-inside", "cut", inside),
)

PIPELINE_ROWS: Rows[Pipeline] = (
    Rule("K-workspace", "cut", workspaces),
    Rule("K-results", "cut", results),
    Rule("K-through", "cut", carried),
    Rule("K-owner", "cut", owned),
)
