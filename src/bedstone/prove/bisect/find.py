"""A failed swap taken apart: hybrids of A and B judged like B, down to the changes that fail."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from bedstone.prove.bisect.graft import Changes, changes_of, graft, spelled
from bedstone.prove.bisect.minimal import culprits
from bedstone.prove.bisect.rules import Rules, rules_between
from bedstone.prove.swap.swap import Proof
from bedstone.prove.swap.verdict import Verdict
from bedstone.runtime.load import Parts

Judge = Callable[[Parts], Verdict]
Progress = Callable[[str], None]


class Hybrids(Protocol):
    """Changes that can be made alone, and A with some of them."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every change."""

    def parts(self, chosen: frozenset[str]) -> Parts:
        """A with the chosen changes."""


@dataclass(frozen=True, slots=True)
class Culprit:
    """Changes that fail together and not without any one of them; the verdict on them alone."""

    changes: tuple[str, ...]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Bisection:
    """What was found: `rest` is the verdict on all other changes, None where there are none.

    `fixed` says of changes why they could not be made alone, `proofs` counts the hybrids judged.
    """

    culprits: tuple[Culprit, ...]
    rest: Verdict | None
    changes: int
    proofs: int
    fixed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Grafts:
    """Changes of B in A's manifest; `kernels` holds the modules of both."""

    a: Parts
    b: Parts
    changes: Changes
    kernels: Path

    @property
    def names(self) -> tuple[str, ...]:
        """Every change that can be made alone."""
        return self.changes.names

    def parts(self, chosen: frozenset[str]) -> Parts:
        """A with the chosen changes."""
        manifest = graft(self.a.manifest, self.b.manifest, self.changes, chosen)
        return Parts(manifest, self.kernels, self.a.checkpoint, self.a.identity)


@contextmanager
def hybrids(
    a: tuple[Path, Parts], b: tuple[Path, Parts], proof: Proof, cache: Path
) -> Iterator[tuple[Hybrids, tuple[str, ...]]]:
    """What can be taken apart between two sides, and what cannot: ops, else rules of the lane."""
    changes = changes_of(proof.diff)
    with TemporaryDirectory(prefix="bedstone-") as made, ExitStack() as held:
        folder = Path(made)
        # of two plans of one model a stretch may be a whole program: rules say more
        otherwise = changes.spans or changes.fixed
        rules = rules_between(a[0], b[0], cache, folder, held) if otherwise else ""
        if isinstance(rules, Rules):
            yield rules, ()
        else:
            _gather(folder, (a[1].kernels, b[1].kernels))
            yield Grafts(a[1], b[1], changes, folder), changes.fixed


def bisect(
    held: Hybrids, fixed: tuple[str, ...], proof: Proof, judge: Judge, progress: Progress
) -> Bisection:
    """Find the smallest sets of changes that fail; `proof` is the failed one of all of them."""
    order = suspected(held.names, proof)
    verdicts: dict[frozenset[str], Verdict] = {}
    if not fixed:
        verdicts[frozenset(order)] = proof.verdict
    known = len(verdicts)

    def fails(chosen: frozenset[str]) -> bool:
        if chosen not in verdicts:
            progress(f"bisect: {len(chosen)} of {len(order)} changes: {_few(sorted(chosen))}")
            verdicts[chosen] = judge(held.parts(chosen))
        return verdicts[chosen].word == "FAIL"

    found = culprits(order, fails)
    rest = frozenset(order).difference(*found)
    return Bisection(
        tuple(Culprit(each, verdicts[frozenset(each)]) for each in found),
        verdicts.get(rest),
        len(order),
        len(verdicts) - known,
        fixed,
    )


def suspected(names: Iterable[str], proof: Proof) -> tuple[str, ...]:
    """Changes in the order in which the proof speaks against them."""
    worst = dict.fromkeys(names, (0, 0.0))
    for result in proof.results:
        badness = (
            result.outside + result.numbers.broken + result.exact.values,
            result.numbers.peak,
        )
        for name in {*result.span.b.ops, spelled(result.span)} & worst.keys():
            worst[name] = max(worst[name], badness)
    for op in proof.crash.ops if proof.crash else ():
        if op in worst:
            worst[op] = (1 << 62, 0.0)
    return tuple(sorted(worst, key=lambda name: worst[name], reverse=True))


def lines(found: Bisection) -> Iterator[str]:
    """One fact a line."""
    yield f"bisect: {found.changes} changes, {found.proofs} hybrids judged"
    yield from (f"bisect: cannot be made alone: {why}" for why in found.fixed)
    for culprit in found.culprits:
        verdict, named = culprit.verdict, ", ".join(f"`{c}`" for c in culprit.changes)
        yield f"bisect: {named} alone: {verdict.word}: {verdict.rule}: {verdict.reason}"
    if not found.culprits:
        yield "bisect: the changes that can be made alone do not fail together"
    elif found.rest is not None:
        rest = found.rest
        yield f"bisect: all other changes: {rest.word}: {rest.rule}: {rest.reason}"


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _gather(folder: Path, sides: Iterable[Path | None]) -> None:
    """Put every file of these folders into one, under names of its own."""
    for side in sides:
        for path in sorted(side.rglob("*")) if side is not None and side.is_dir() else ():
            if path.is_file():
                label = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()
                (folder / label).unlink(missing_ok=True)
                (folder / label).symlink_to(path.resolve())
