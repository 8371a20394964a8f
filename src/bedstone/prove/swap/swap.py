"""A swap judged: both packages loaded one after the other, driven, compared and reported."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from bedstone.errors import DeviceError, KernelError
from bedstone.prove.apart import Death, Mark, run_apart
from bedstone.prove.swap.again import Noise, again, against, differing, noise
from bedstone.prove.swap.costs import count_bytes, step_of
from bedstone.prove.swap.diff import Diff, diff
from bedstone.prove.swap.drive import NAN, Carries, Side, free_run, limits
from bedstone.prove.swap.even import uneven
from bedstone.prove.swap.image import Shadow
from bedstone.prove.swap.measure import LogitDistance, Numbers, worst
from bedstone.prove.swap.perf import Perf, copy_rate, time_swap, timed_turns
from bedstone.prove.swap.record import Record, record
from bedstone.prove.swap.reel import Reel
from bedstone.prove.swap.replay import SpanResult, loaded, replay
from bedstone.prove.swap.verdict import Bounds, Evidence, Spans, Verdict, judge
from bedstone.prove.swap.watch import Crash, Watch, watched
from bedstone.prove.swap.workload import Limits, Turn, capacity, workload
from bedstone.runtime.device import Memory
from bedstone.runtime.load import Parts, load
from bedstone.runtime.lower import Region
from bedstone.runtime.modules import resolve_modules
from bedstone.runtime.session import Session
from bedstone.spec.dtype import DType
from bedstone.spec.manifest import Manifest
from bedstone.target.bandwidth import measure_bandwidth
from bedstone.verify import verify
from bedstone.verify.protocol import Protocol, protocol

_READ = 128 << 20
"""Bytes read to measure the bandwidth: more than most caches, and about a small model's weights."""


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
    """What A did, `sizes` of its memory, and what it did again."""

    kept: Record
    sizes: Mapping[Region, int]
    noise: Noise


@dataclass(frozen=True, slots=True)
class _OfB:
    """What B did: each span from A's memory, and its logits against A's.

    `stale` rows are changed by other bytes in unused memory, `restless` ones by running again.
    """

    results: tuple[SpanResult, ...]
    logits: LogitDistance
    stale: int
    restless: int
    strange: int
    weights: bool


def prove_swap(a: Parts, b: Parts, settings: Settings, progress: Callable[[str], None]) -> Proof:
    """Judge whether B may take A's place.

    Raises what `load` raises of either, and `CallerError`: A cannot be driven.
    """
    progress("diff")
    found = diff(verify(a.manifest).manifest, verify(b.manifest).manifest)
    for side in (a, b):
        # what is alike by its hash has to be there
        resolve_modules(side.manifest.modules, side.kernels)
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
        # before there are weights: what it reads is as large as they may be
        rate = measure_bandwidth(_READ).bytes_per_second if settings.device == "cpu" else None
        with ExitStack() as held:
            a = held.enter_context(_opened(sides[0], known, bounds, settings))
            weights = _shared(a, sides[1].manifest) if settings.device == "cpu" else {}
            b = held.enter_context(_opened(sides[1], known, bounds, settings, weights))
            both = Side(a, cached=settings.cached), Side(b, cached=settings.cached)
            steps = tuple(time_swap(both, chosen, proof.diff, carries, nbytes))
            return Perf(rate or copy_rate(a.loaded.device), steps)

    found = run_apart(work, settings.seconds, (DeviceError,))
    return None if isinstance(found, Death) else found


def _shared(a: Session, b: Manifest) -> dict[str, Memory]:
    """The weights of A that B binds alike: both read them."""
    buffers = a.manifest.buffers
    return {
        name: a.loaded.memory[Region("buffer", name)]
        for name, buffer in b.buffers.items()
        if buffer.kind == "weight" and buffers.get(name) == buffer
    }


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
    with closing(Reel()) as reel:

        def first(watch: Watch) -> _OfA:
            with _opened(a, known, bounds, settings) as session:
                side = Side(session, watch(session), settings.cached)
                progress("record")
                kept = record(side, turns, found, reel)
                progress("noise")
                again = noise(side, turns, found, (kept, reel), settings.bounds, settings.seed)
                return _OfA(kept, side.stepper.sizes, again)

        of_a = _alive(first, verify(a.manifest).manifest, settings.seconds)
        limit = settings.bounds.widened(of_a.noise.swayed)
        progress("replay")

        def drive(watch: Watch) -> _OfB:
            with _opened(b, known, bounds, settings) as session:
                side = Side(session, watch(session), settings.cached)
                return _drive(side, turns, found, (of_a, reel), limit)

        of_b = watched(drive, verify(b.manifest).manifest, settings.seconds)
    kept = of_a.kept
    if isinstance(of_b, Crash):
        where = of_b if of_b.program else replace(of_b, ops=_while_loading(found, b.manifest))
        return _crashed(found, turns, kept, where, settings), kept.outcome.carries
    evidence = _evidence(found, known, of_a, of_b, opened=int(np.isinf(limit).sum()))
    verdict = judge(evidence, settings.bounds)
    sizes = len(kept.snapshots), kept.nbytes
    return Proof(found, turns, of_b.results, evidence, verdict, *sizes), kept.outcome.carries


def _alive(work: Callable[[Watch], _OfA], manifest: Manifest, seconds: float) -> _OfA:
    """What A did, in a process of its own: its memory is gone before B takes any.

    Raises `KernelError`: A crashed, or did not end.
    """
    found = watched(work, manifest, seconds)
    if isinstance(found, Crash):
        raise KernelError(f"A, which B is held against, ends by {found}")
    return found


@contextmanager
def _opened(
    parts: Parts,
    known: Protocol,
    bounds: Limits,
    settings: Settings,
    weights: Mapping[str, Memory] | None = None,
) -> Iterator[Session]:
    """A side loaded for the workload; `weights` are those that lie somewhere already."""
    tokens, sequences = capacity(known, bounds)
    session: Session = load(
        parts,
        device=settings.device,
        threads=settings.threads,
        tokens=tokens,
        sequences=sequences,
        cache=settings.cache,
        weights=weights or {},
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


def _drive(
    side: Side, turns: Sequence[Turn], found: Diff, of_a: tuple[_OfA, Reel], limit: Numbers
) -> _OfB:
    """Drive B; `limit` is the most divergence of each row of logits [rows]."""
    before, kept = side.stepper.weights(), of_a[0].kept
    carries = kept.outcome.carries
    first = free_run(side, turns, NAN, carries)
    repeat, moved = again(side, turns, first, carries)
    logits = against(kept.outcome, first, limit)
    stale, restless = differing(first, moved), differing(first, repeat)
    strange = first.strange
    del first, repeat, moved
    shadow = Shadow(of_a[0].sizes)
    results = (*loaded(side, found, kept), *replay(side, turns, kept, shadow, of_a[1]))
    written = side.stepper.weights() != before
    return _OfB(results, logits, stale, restless, strange, written)


def _evidence(found: Diff, known: Protocol, of_a: _OfA, of_b: _OfB, opened: int) -> Evidence:
    kept, mine = of_a.kept, of_a.noise
    loading = frozenset((*known.once, *known.derive))
    changed = {span.program for span in found.spans}
    compared = {result.span for result in of_b.results}
    return Evidence(
        spans=summed(of_b.results),
        lasting=worst(result.lasting for result in of_b.results),
        uneven=len(tuple(uneven(of_b.results, mine.nudged))),
        logits=of_b.logits,
        noise=summed(mine.again),
        floor=mine.floor,
        sway=mine.sway,
        open=opened,
        floor_stale=mine.stale,
        stale=of_b.stale,
        restless=of_b.restless,
        strange=of_b.strange,
        floor_strange=kept.outcome.strange,
        weights=of_b.weights,
        undriven=tuple(sorted(changed - kept.programs - loading)),
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
