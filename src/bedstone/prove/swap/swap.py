"""A swap judged: both packages loaded one after the other, driven, compared and reported."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from bedstone.errors import DeviceError
from bedstone.prove.apart import Death, Mark, run_apart
from bedstone.prove.swap.costs import count_bytes, step_of
from bedstone.prove.swap.diff import Diff, diff
from bedstone.prove.swap.drive import LARGE, NAN, Carries, Outcome, Side, free_run, limits
from bedstone.prove.swap.even import uneven
from bedstone.prove.swap.image import Shadow
from bedstone.prove.swap.measure import LogitDistance, logit_distance, worst, worst_logits
from bedstone.prove.swap.perf import Perf, copy_rate, time_swap, timed_turns
from bedstone.prove.swap.record import Record, record
from bedstone.prove.swap.replay import SpanResult, loaded, replay
from bedstone.prove.swap.sway import sway_run, swayed_spans
from bedstone.prove.swap.verdict import Bounds, Evidence, Spans, Verdict, judge
from bedstone.prove.swap.watch import Crash, Watch, watched
from bedstone.prove.swap.workload import Limits, Turn, capacity, workload
from bedstone.runtime.load import Parts, load
from bedstone.runtime.lower import Region
from bedstone.runtime.session import Session
from bedstone.spec.dtype import DType
from bedstone.spec.manifest import Manifest
from bedstone.target.bandwidth import measure_bandwidth
from bedstone.verify import verify
from bedstone.verify.protocol import Protocol, protocol


@dataclass(frozen=True, slots=True)
class Settings:
    """How a swap is judged; `cache` and `threads` as of a load, `seconds` the most a side may take.

    `timed` says that both are timed too. `package` is A's directory, whose plan says how many bytes
    its calls move. `cached` is the type of the values that paged states hold.
    """

    bounds: Bounds
    cache: Path
    seed: int = 1
    threads: int | None = None
    seconds: float = 600.0
    timed: bool = False
    package: Path | None = None
    device: Literal["cpu", "cuda"] = "cpu"
    cached: DType = "f32"


@dataclass(frozen=True, slots=True)
class Proof:
    """All that was found."""

    diff: Diff
    turns: tuple[Turn, ...]
    results: tuple[SpanResult, ...]
    evidence: Evidence
    verdict: Verdict
    snapshots: int = 0
    kept_bytes: int = 0
    crash: Crash | None = None
    perf: Perf | None = None


@dataclass(frozen=True, slots=True)
class _OfA:
    """What A did, and did again: alike, on other poison, with other last bits; and span by span.

    `noise` are its spans alike, `spans` those with other last bits; `sizes` are of its memory.
    """

    kept: Record
    sizes: Mapping[Region, int]
    again: Outcome
    other: Outcome
    swayed: Outcome
    noise: tuple[SpanResult, ...]
    spans: tuple[SpanResult, ...]


@dataclass(frozen=True, slots=True)
class _OfB:
    """What B did: each span from A's memory, and a run of its own, again, and on other poison."""

    results: tuple[SpanResult, ...]
    runs: tuple[Outcome, Outcome, Outcome]
    weights: bool


def prove_swap(a: Parts, b: Parts, settings: Settings, progress: Callable[[str], None]) -> Proof:
    """Judge whether B may take A's place.

    Raises what `load` raises of either, and `CallerError`: A cannot be driven.
    """
    progress("diff")
    found = diff(verify(a.manifest).manifest, verify(b.manifest).manifest)
    if found.identical or found.apart:
        evidence = Evidence(identical=found.identical, apart=len(found.apart))
        return Proof(found, (), (), evidence, judge(evidence, settings.bounds))
    known = protocol(verify(a.manifest))
    bounds = limits(a.manifest, known)
    proof, carries = _judged((a, b), found, known, bounds, settings, progress)
    if not settings.timed or proof.crash is not None:
        return proof
    progress("perf")
    return replace(proof, perf=_timed((a, b), proof, carries, known, bounds, settings))


def _timed(
    sides: tuple[Parts, Parts],
    proof: Proof,
    carries: Carries,
    known: Protocol,
    bounds: Limits,
    settings: Settings,
) -> Perf | None:
    """Both sides timed in a process that has both; None where B, which ran before, ends it."""
    chosen = timed_turns(proof.turns, proof.diff)
    steps = {index: step_of(turn, known, bounds) for index, turn in chosen.items()}
    counted = count_bytes(settings.package, list(steps.values())) if settings.package else {}
    nbytes = {index: counted[step] for index, step in steps.items() if step in counted}

    def work(_: Mark) -> Perf:
        with ExitStack() as held:
            a, b = (held.enter_context(_opened(s, known, bounds, settings)) for s in sides)
            both = Side(a, cached=settings.cached), Side(b, cached=settings.cached)
            return Perf(_bandwidth(a), tuple(time_swap(both, chosen, proof.diff, carries, nbytes)))

    found = run_apart(work, settings.seconds, (DeviceError,))
    return None if isinstance(found, Death) else found


def _bandwidth(session: Session) -> float:
    """Bytes a second that the memory of a session's device gives."""
    device = session.loaded.device
    return measure_bandwidth().bytes_per_second if device.name == "cpu" else copy_rate(device)


def _judged(
    sides: tuple[Parts, Parts],
    found: Diff,
    known: Protocol,
    bounds: Limits,
    settings: Settings,
    progress: Callable[[str], None],
) -> tuple[Proof, Carries]:
    """The proof so far, and what chains go on from."""
    a, b = sides
    turns = workload(known, bounds, settings.seed)

    def first(_: Mark | None) -> _OfA:
        with _opened(a, known, bounds, settings) as session:
            side = Side(session, cached=settings.cached)
            progress("record")
            kept = record(side, turns, found)
            progress("noise")
            return _noise(side, turns, found, kept, np.random.default_rng(settings.seed))

    of_a = _alive(first, settings)
    kept, shadow = of_a.kept, Shadow(of_a.sizes)
    progress("replay")

    def drive(watch: Watch) -> _OfB:
        with _opened(b, known, bounds, settings) as session:
            side = Side(session, watch(session), settings.cached)
            return _drive(side, turns, found, kept, shadow)

    of_b = watched(drive, verify(b.manifest).manifest, settings.seconds)
    if isinstance(of_b, Crash):
        where = of_b if of_b.program else replace(of_b, ops=_while_loading(found, b.manifest))
        return _crashed(found, turns, kept, where, settings), kept.outcome.carries
    evidence = _evidence(found, known, kept, of_a, of_b, settings)
    verdict = judge(evidence, settings.bounds)
    sizes = len(kept.snapshots), kept.nbytes
    return Proof(found, turns, of_b.results, evidence, verdict, *sizes), kept.outcome.carries


def _alive(work: Callable[[Mark | None], _OfA], settings: Settings) -> _OfA:
    """What A did. Where its device is the CPU the work is done here, so that B finds its record.

    Raises `DeviceError`: A ended; what forks must not have opened a GPU, so that is done apart.
    """
    if settings.device == "cpu":
        return work(None)
    found = run_apart(work, settings.seconds)
    if isinstance(found, Death):
        raise DeviceError(f"A ended: {found.how}")
    return found


def _noise(
    side: Side, turns: Sequence[Turn], found: Diff, kept: Record, rng: np.random.Generator
) -> _OfA:
    again, other = _again(side, turns, kept.outcome, kept.outcome.carries)
    # where A gives its own logits again, so does each of its spans
    steady = not _differing(kept.outcome, again)
    shadow = Shadow(side.stepper.sizes)
    return _OfA(
        kept,
        side.stepper.sizes,
        again,
        other,
        swayed=sway_run(side, turns, found, kept.outcome.carries, rng),
        noise=() if steady else tuple(replay(side, turns, kept, shadow, own=True)),
        spans=swayed_spans(side, turns, kept, rng),
    )


@contextmanager
def _opened(parts: Parts, known: Protocol, bounds: Limits, settings: Settings) -> Iterator[Session]:
    tokens, sequences = capacity(known, bounds)
    session: Session = load(
        parts,
        device=settings.device,
        threads=settings.threads,
        tokens=tokens,
        sequences=sequences,
        cache=settings.cache,
    )
    with session:
        yield session


def _crashed(
    found: Diff, turns: tuple[Turn, ...], kept: Record, crash: Crash, settings: Settings
) -> Proof:
    """What is known where B ends before its time."""
    evidence = Evidence(crashed=not crash.stalled, stalled=crash.stalled)
    verdict = judge(evidence, settings.bounds)
    return Proof(found, turns, (), evidence, verdict, len(kept.snapshots), kept.nbytes, crash)


def _while_loading(found: Diff, manifest: Manifest) -> tuple[str, ...]:
    """The ops of B that changed and that programs of loading run."""
    programs = manifest.programs
    spans = (s for s in found.spans if programs[s.program].once or programs[s.program].derive)
    return tuple(dict.fromkeys(op for span in spans for op in span.b.ops))


def _drive(side: Side, turns: Sequence[Turn], found: Diff, kept: Record, shadow: Shadow) -> _OfB:
    before = side.stepper.weights()
    carries = kept.outcome.carries
    first = free_run(side, turns, NAN, carries)
    runs = (first, *_again(side, turns, first, carries))
    results = (*loaded(side, found, kept), *replay(side, turns, kept, shadow))
    return _OfB(results, runs, side.stepper.weights() != before)


def _again(
    side: Side, turns: Sequence[Turn], first: Outcome, carries: Carries
) -> tuple[Outcome, Outcome]:
    """The outcome of a run alike, and of one on other poison: one run where it changes nothing."""
    other = free_run(side, turns, LARGE, carries)
    if not _differing(first, other):
        return other, other
    return free_run(side, turns, NAN, carries), other


def _evidence(
    found: Diff,
    known: Protocol,
    kept: Record,
    of_a: _OfA,
    of_b: _OfB,
    settings: Settings,
) -> Evidence:
    limit = settings.bounds.kl
    sway = _against(kept.outcome, of_a.swayed, limit)
    first, repeat, moved = of_b.runs
    loading = frozenset((*known.once, *known.derive))
    driven = set(kept.programs)
    changed = {span.program for span in found.spans}
    compared = {result.span for result in of_b.results}
    return Evidence(
        spans=summed(of_b.results),
        lasting=worst(result.lasting for result in of_b.results),
        uneven=len(tuple(uneven(of_b.results, of_a.spans))),
        logits=_against(kept.outcome, first, settings.bounds.widened(sway)),
        noise=summed(of_a.noise),
        floor=_against(kept.outcome, of_a.again, limit),
        sway=sway,
        floor_stale=_differing(of_a.again, of_a.other),
        stale=_differing(first, moved),
        restless=_differing(first, repeat),
        strange=first.strange,
        floor_strange=kept.outcome.strange,
        weights=of_b.weights,
        undriven=tuple(sorted(changed - driven - loading)),
        unreplayed=sum(
            bool(span.mismatch) or (span.program in loading and span not in compared)
            for span in found.spans
        ),
        compared=len(of_b.results),
    )


def summed(results: Iterable[SpanResult]) -> Spans:
    """All spans together."""
    held = list(results)
    return Spans(
        numbers=worst(result.numbers for result in held),
        exact=worst(result.exact for result in held),
        picks=sum(result.exact.values for result in held if not result.numbers.elements),
        outside=sum(result.outside for result in held),
    )


def _against(a: Outcome, b: Outcome, limit: float) -> LogitDistance:
    pairs = zip(a.logits, b.logits, strict=True)
    return worst_logits(
        logit_distance(mine[name], theirs[name], limit)
        for mine, theirs in pairs
        for name in mine.keys() & theirs.keys()
    )


def _differing(a: Outcome, b: Outcome) -> int:
    """Rows of logits that differ; NaN is NaN."""
    pairs = zip(a.logits, b.logits, strict=True)
    return sum(
        int((~((mine[n] == theirs[n]) | np.isnan(mine[n]) & np.isnan(theirs[n]))).any(axis=1).sum())
        for mine, theirs in pairs
        for n in mine.keys() & theirs.keys()
    )
