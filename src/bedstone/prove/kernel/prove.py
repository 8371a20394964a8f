"""Ops of a package, each held against its Definition on recorded calls and on made inputs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from bedstone.build.kernels import catalogs
from bedstone.errors import CallerError, CapacityError, DefinitionError, WeightError
from bedstone.library.catalog import cpu_kernels
from bedstone.library.kernel import CacheType, KernelSet
from bedstone.prove.apart import Death, Mark, run_apart
from bedstone.prove.kernel.case import Judged
from bedstone.prove.kernel.identify import Known, identify
from bedstone.prove.kernel.pose import made_cases
from bedstone.prove.kernel.rig import Left, Rig
from bedstone.prove.kernel.tap import Tap, judge_tap, tap
from bedstone.prove.swap.drive import Side, limits
from bedstone.prove.swap.verdict import Word
from bedstone.prove.swap.watch import Crash, Watch, watched
from bedstone.prove.swap.workload import capacity, workload
from bedstone.runtime.load import DeviceName, Parts, load
from bedstone.spec.manifest import Manifest
from bedstone.target.hardware import read_sets
from bedstone.verify import verify
from bedstone.verify.protocol import protocol


@dataclass(frozen=True, slots=True)
class Settings:
    """How ops are tried; `cache` and `threads` as of a load, `seconds` the most a run may take.

    Calls are recorded on the CPU only: another device runs whole programs.
    """

    cache: Path
    device: DeviceName = "cpu"
    seed: int = 1
    threads: int | None = None
    seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class OpProof:
    """An op's verdict: the calls that were judged, and why others were not."""

    op: str
    word: Word
    reason: str
    calls: tuple[Judged, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Tried:
    """Calls that were judged, notes on those that were not; `late` where the op did not end."""

    calls: tuple[Judged, ...] = ()
    notes: tuple[str, ...] = ()
    late: bool = False


Progress = Callable[[str], None]
Recorded = list[Tap] | Crash | str
"""Calls of a run of the package, how it died, or why there is none."""


def prove_ops(
    parts: Parts, names: Sequence[str], settings: Settings, progress: Progress
) -> Iterator[OpProof]:
    """Judge ops of a manifest one after the other.

    Raises `CallerError`: the manifest has no such op.
    """
    manifest = verify(parts.manifest).manifest
    for name in names:
        if name not in manifest.ops:
            near = ", ".join(f"`{op}`" for op in sorted(manifest.ops))
            raise CallerError(f"no op `{name}` in the manifest; there are {near}")
    known, unknown = _identified(manifest, names, settings)
    progress("record")
    recorded = _recorded(parts, known, settings)
    rig = Rig(manifest, parts.kernels, settings.device, settings.cache, settings.threads)
    for number, name in enumerate(names, 1):
        progress(f"op {number} of {len(names)}: {name}")
        if name in unknown:
            yield OpProof(name, "INCONCLUSIVE", unknown[name])
        else:
            run = _of_run(known[name], recorded)
            yield _proved(known[name], (run, _of_made(known[name], rig, settings)))


def _identified(
    manifest: Manifest, names: Sequence[str], settings: Settings
) -> tuple[dict[str, Known], dict[str, str]]:
    """The ops whose mathematics is known, and why that of the others is not."""
    sets = _sets(settings.device)
    known: dict[str, Known] = {}
    unknown: dict[str, str] = {}
    for name in names:
        try:
            known[name] = identify(manifest, name, sets)
        except DefinitionError as error:
            unknown[name] = str(error)
    return known, unknown


def _sets(device: DeviceName) -> list[KernelSet]:
    """The kernels that the library states for a device's vendor; all CPU sets are alike."""
    if device == "cpu":
        return [cpu_kernels(cache) for cache in get_args(CacheType)]
    every = (each for each in read_sets().values() if each.vendor == "nvidia")
    return [kernels for hardware in every for kernels in catalogs(hardware)]


def _recorded(parts: Parts, known: Mapping[str, Known], settings: Settings) -> Recorded:
    """Run the package with a tap on each op that is known."""
    if settings.device != "cpu" or not known:
        return f"device `{settings.device}` runs whole programs"
    verified = verify(parts.manifest)
    try:
        drives = protocol(verified)
        bounds = limits(parts.manifest, drives)
        turns = workload(drives, bounds, settings.seed)
        tokens, sequences = capacity(drives, bounds)

        def work(watch: Watch) -> list[Tap]:
            session = load(
                parts,
                threads=settings.threads,
                tokens=tokens,
                sequences=sequences,
                cache=settings.cache,
            )
            with session:
                return tap(Side(session, watch(session)), turns, known)

        return watched(work, verified.manifest, settings.seconds)
    except (CallerError, WeightError) as error:
        return str(error)


def _proved(known: Known, tried: Sequence[_Tried]) -> OpProof:
    """The verdict on what was tried: a wrong call refuses, one without end says nothing."""
    calls = tuple(call for each in tried for call in each.calls)
    notes = tuple(note for each in tried for note in each.notes)
    wrong = sum(not call.fits for call in calls)
    if wrong:
        return OpProof(known.name, "FAIL", f"{wrong} of {len(calls)} calls are wrong", calls, notes)
    if not calls or any(each.late for each in tried):
        return OpProof(
            known.name, "INCONCLUSIVE", notes[-1] if notes else "never called", calls, notes
        )
    return OpProof(known.name, "PASS", f"{len(calls)} calls are right", calls, notes)


def _of_run(known: Known, recorded: Recorded) -> _Tried:
    """Recorded calls held against the reference."""
    if isinstance(recorded, str):
        return _Tried(notes=(f"no call recorded: {recorded}",))
    if isinstance(recorded, Crash):
        if known.name in recorded.ops:
            return _ended("recorded", str(recorded), late=recorded.stalled)
        return _Tried(notes=(f"no call recorded: {recorded}",))
    taps = [each for each in recorded if each.site.op == known.name]
    if not taps:
        return _Tried(notes=("no call recorded: no program that is driven calls it",))
    return _Tried(tuple(judge_tap(known, each) for each in taps))


def _of_made(known: Known, rig: Rig, settings: Settings) -> _Tried:
    """Calls on made inputs, in a process of their own."""
    try:
        cases = list(made_cases(known, rig.manifest, settings.seed))
    except (DefinitionError, CapacityError) as error:
        return _Tried(notes=(f"no inputs made: {error}",))

    def work(mark: Mark) -> list[Left]:
        left = []
        for case in cases:
            mark.set(case.where)
            left.append(rig.run(known, case.given()))
        return left

    found = run_apart(work, settings.seconds)
    if isinstance(found, Death):
        return _ended(found.mark, found.how, late=found.stalled)
    return _Tried(tuple(case.judged(left) for case, left in zip(cases, found, strict=True)))


def _ended(where: str, how: str, *, late: bool) -> _Tried:
    """A run that the op ended: a crash is its fault, a run without end says nothing."""
    if late:
        return _Tried(notes=(f"{where}: {how}",), late=True)
    return _Tried((Judged(where, (), (how,)),))
