"""Kernels with one edit drawn at random, judged as a swap, and held against a denser workload.

A mutant that passes has to be one of two things: equivalent, where every logit of a workload far
denser than the judge's is the same to the bit, or a rounding, where logits there differ as little
and as evenly as a verdict of PASS claims. Anything else is a false PASS.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Literal, TypeVar

import numpy as np

from bedstone.build.kernels import modules_of
from bedstone.build.lane import lane_of
from bedstone.errors import BedstoneError
from bedstone.prove.apart import Death, run_apart
from bedstone.prove.swap.drive import NAN, Outcome, Side, free_run, limits
from bedstone.prove.swap.even import STEADY
from bedstone.prove.swap.lengths import FAR, far_start
from bedstone.prove.swap.measure import logit_distance
from bedstone.prove.swap.report import lines
from bedstone.prove.swap.swap import Settings, prove_swap
from bedstone.prove.swap.verdict import Bounds, Word
from bedstone.prove.swap.workload import Turn
from bedstone.runtime.inputs import Feed
from bedstone.runtime.lease import Lease
from bedstone.runtime.load import load, read_parts
from bedstone.spec.codec import parse
from bedstone.target.cpu import choose
from bedstone.target.features import read_features
from bedstone.target.hardware import read_sets
from bedstone.target.sources import read_sources
from bedstone.verify import verify
from bedstone.verify.protocol import Protocol, protocol
from swaps import Edit, rebuilt

_SECONDS = 120.0
_NAMING = ("replay: ", "crash: ", "unreplayed: ")
_SWAPPED = {
    " < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ",
    " + ": " - ", " - ": " + ", " * ": " + ", " += ": " -= ", "bs_min(": "bs_max(",
    "bs_max(": "bs_min(", "++": "--", " && ": " || ", " || ": " && ", "vf_larger(": "vf_smaller(",
}  # fmt: skip
_SITES: tuple[tuple[str, str], ...] = (
    ("bound or sign", "|".join(map(re.escape, _SWAPPED))),
    ("constant", r"(?<![\w.])\d+(?![\w.])|(?<![\w.])\d+\.\d+f"),
    ("index", r"(?<=\[)\w+(?=\])"),
    ("sign", r"(?<=return )(?=[a-z])"),
)


ItemT = TypeVar("ItemT")


def one(rng: np.random.Generator, items: Sequence[ItemT]) -> ItemT:
    """One of some items."""
    return items[int(rng.integers(len(items)))]


@dataclass(frozen=True, slots=True)
class Mutation:
    """One edit of a line of a source; `what` says of what kind."""

    source: str
    line: int
    old: str
    new: str
    what: str

    @property
    def edit(self) -> Edit:
        """As text to be replaced; the line is the only one of its kind."""
        return self.source, f"\n{self.old}\n", f"\n{self.new}\n"


def mutations(name: str, text: str, rng: np.random.Generator) -> Iterator[Mutation]:
    """Edits of a source in a drawn order, each of a line that occurs once."""
    split = text.split("\n")
    numbers = [at for at, line in enumerate(split) if at and _is_code(line, split)]
    while numbers:
        at = one(rng, numbers)
        what, pattern = one(rng, _SITES)
        found = list(re.finditer(pattern, split[at]))
        if found:
            site = one(rng, found)
            start, end = site.span()
            new = split[at][:start] + _other(what, site.group(), rng) + split[at][end:]
            yield Mutation(name, at + 1, split[at], new, what)


def _is_code(line: str, every: Sequence[str]) -> bool:
    bare = line.strip()
    comment = bare.startswith(("#", "/*", "*")) or "*/" in bare
    return len(bare) > 3 and not comment and '"' not in bare and every.count(line) == 1


def _other(what: str, text: str, rng: np.random.Generator) -> str:
    if what == "bound or sign":
        return _SWAPPED[text]
    if what == "index":
        return f"{text} + 1"
    if what == "sign":
        return "-"
    if "." in text:
        return f"{float(text[:-1]) * one(rng, (0.5, 0.99, 1.01, 2.0))!r}f"
    return str(int(text) + one(rng, (-1, 1)))


@dataclass(frozen=True, slots=True)
class Subject:
    """A package whose kernels are edited, and where its runtime's compiled parts are kept."""

    name: str
    package: Path
    cache: Path


def drawn(subject: Subject, rng: np.random.Generator) -> tuple[str, Mutation]:
    """A module of the package and an edit of a source that it is compiled from."""
    manifest = parse((subject.package / "manifest.json").read_bytes())
    hardware = choose("auto", read_sets(), read_features())
    known = modules_of(lane_of(hardware, "precise").kernels.kernels.values())
    module = one(rng, sorted(manifest.modules.keys() & known.keys()))
    kernel = known[module]
    unit = read_sources(hardware).unit(kernel.source, kernel.defines)
    texts = dict(_included(kernel.source, unit.include))
    headers = sorted(n for n in texts.keys() - {kernel.source} if "[i" in texts[n])
    name = one(rng, [kernel.source] * max(1, len(headers)) + headers)
    return module, next(mutations(name, texts[name], rng))


def _included(name: str, folders: Sequence[Path]) -> Iterator[tuple[str, str]]:
    wanted, seen = [name], set[str]()
    while wanted:
        path = next((f / wanted[-1] for f in folders if (f / wanted[-1]).exists()), None)
        name = wanted.pop()
        if path is not None and name not in seen:
            seen.add(name)
            text = path.read_text()
            yield name, text
            wanted += re.findall(r'#include [<"]([\w.]+)[>"]', text)


Kind = Literal["no edit", "caught", "equivalent", "rounding", "false PASS"]


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a mutant; `named` says whether the report names an op of its module."""

    subject: str
    module: str
    mutation: Mutation
    kind: Kind
    word: Word | None = None
    rule: str = ""
    named: bool = False
    why: str = ""


def tried(subject: Subject, module: str, mutation: Mutation, out: Path) -> Result:
    """Build a mutant, judge it, and where it passes look closer."""
    given = subject.name, module, mutation
    try:
        other = rebuilt(subject.package, out, module, mutation.edit)
    except BedstoneError:
        return Result(*given, "no edit", why="it does not compile")
    a, b = read_parts(subject.package), read_parts(other)
    if a.manifest == b.manifest:
        return Result(*given, "no edit", why="it compiles to the same bytes")
    settings = Settings(Bounds(), subject.cache, threads=1, seconds=_SECONDS, timed=False)
    proof = prove_swap(a, b, settings, lambda _: None)
    word, rule = proof.verdict.word, proof.verdict.rule
    ops = {change.op for change in proof.diff.ops}
    told = [line for line in lines(proof) if line.startswith(_NAMING)]
    named = any(op in line for op in ops for line in told)
    if word != "PASS":
        return Result(*given, "caught", word, rule, named)
    kind, why = closer(subject, other)
    return Result(*given, kind, word, rule, named, why)


def closer(subject: Subject, other: Path) -> tuple[Kind, str]:
    """What a mutant that passes is, by a workload far denser than that it was judged by."""
    mine = _once(subject.package, subject.cache)
    theirs = _driven(other, subject.cache)
    if isinstance(mine, Death) or isinstance(theirs, Death):
        return "false PASS", "it does not end"
    pairs = [
        (a[name], b[name]) for a, b in zip(mine.logits, theirs.logits, strict=True) for name in a
    ]
    errors = [_error(a, b) for a, b in pairs]
    if not any(errors):
        return "equivalent", f"{len(pairs)} calls are the same to the bit"
    kl = max(logit_distance(a, b, 1.0).kl for a, b in pairs)
    usual, most = median(errors), max(errors)
    told = f"errors {usual:.2g} in most calls, {most:.2g} at most, KL {kl:.2g}"
    good = most <= Bounds().drift and most <= max(1e-5, STEADY * usual) and kl <= Bounds().kl
    return ("rounding" if good else "false PASS"), told


@cache
def _once(package: Path, kept: Path) -> Outcome | Death:
    return _driven(package, kept)


def _driven(package: Path, kept: Path) -> Outcome | Death:
    return run_apart(lambda _: _dense(package, kept), _SECONDS)


def _error(a: np.ndarray, b: np.ndarray) -> float:
    """The error's root mean square over that of A's values; whole where B has no number."""
    if np.array_equal(a.view(np.uint32), b.view(np.uint32)):
        return 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.sqrt(np.mean(np.square(b.astype(float) - a)) / np.mean(np.square(a)))
    return float(error) if np.isfinite(error) else 1.0


def _dense(package: Path, kept: Path) -> Outcome:
    parts = read_parts(package)
    known = protocol(verify(parts.manifest))
    bounds = limits(parts.manifest, known)
    planner = _Dense(known, bounds.reach, bounds.vocab)
    turns = list(planner.turns())
    tokens, sequences = planner.next_page * planner.unit, planner.next_slot
    with load(
        parts, device="cpu", tokens=tokens, sequences=sequences, cache=kept, threads=1
    ) as session:
        return free_run(Side(session), turns, NAN, {})


class _Dense:
    """Every length up to past two tiles, every position up to past four, around 4,096 and the end.

    And many steps of several sequences.
    """

    def __init__(self, known: Protocol, reach: int, vocab: int) -> None:
        self.known, self.reach, self.vocab = known, reach, vocab
        self.rng = np.random.default_rng(99)
        self.unit = known.page_tokens or 32
        self.next_page, self.next_slot = 0, 1
        self.full: list[int] = []
        self.lengths: dict[Lease, int] = {}

    def turns(self) -> Iterator[Turn]:
        for length in range(1, min(140, self.reach - 8)):
            lease = self._lease(0, length + 8)
            yield from self._fed([lease], length)
            yield from self._fed([lease], 1)
            self.full += lease.pages[: length // self.unit]
        most = min(300, self.reach)
        walked = self._lease(0, most)
        for _ in range(most):
            yield from self._fed([walked], 1)
        for end in (FAR + 8, self.reach):
            start = far_start(self.unit, min(end, self.reach))
            lease = self._lease(start, min(end, self.reach))
            for _ in range(min(end, self.reach) - start):
                yield from self._fed([lease], 1)
        yield from self._batches()

    def _batches(self) -> Iterator[Turn]:
        for _ in range(60):
            room = [x for x, n in self.lengths.items() if n + 1 < x.tokens and n + 1 < self.reach]
            count = int(self.rng.integers(2, self.known.groups.max + 1))
            chosen = self.rng.choice(len(room), count, replace=False)
            yield from self._fed([room[at] for at in chosen], 1)

    def _lease(self, start: int, end: int) -> Lease:
        count = -(-end // self.unit) - start // self.unit
        own = range(self.next_page, self.next_page + count)
        lent = self.rng.choice(self.full, start // self.unit).tolist() if start else []
        lease = Lease((*lent, *own), self.unit, self.next_slot)
        self.next_page, self.next_slot = self.next_page + count, self.next_slot + 1
        self.lengths[lease] = start
        return lease

    def _fed(self, leases: Sequence[Lease], rows: int) -> Iterator[Turn]:
        many = len(leases) > 1
        shape = self.known.step(len(leases)) if many or rows == 1 else self.known.chunk
        shape = shape or self.known.chunk
        if shape is None:
            return
        most = rows if shape.rows else min(rows, self.known.rows.max)
        for done in range(0, rows, most):
            each = min(most, rows - done)
            feeds = tuple(
                Feed(self.rng.integers(self.vocab, size=each).tolist(), self.lengths[x], x)
                for x in leases
            )
            opens = tuple(x.slot for x in leases if not self.lengths[x])
            for lease in leases:
                self.lengths[lease] += each
            longest = max(self.lengths[lease] for lease in leases)
            given = self.known.call_vars(each * len(leases), len(leases), longest=longest)
            yield Turn(shape.program, feeds, tuple(leases), given, longest, opens)
