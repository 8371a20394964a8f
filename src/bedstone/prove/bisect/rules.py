"""Two packages that differ in the rules of the lane that were held back: compiled again in between.

A package does not say which rules were held. Which ones fired it does, in its plan: a rule that
fired for one of two packages alone is taken for held in the other. Whether that is so shows when
both come out of a compile again as they are.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import combinations, count
from pathlib import Path

from bedstone.build.compile import compile_checkpoint
from bedstone.build.request import Options, Request, is_package, open_weights, read_package
from bedstone.checkpoint.checkpoint import Checkpoint
from bedstone.errors import CallerError
from bedstone.lane.plan import RULES
from bedstone.runtime.load import Parts, read_parts
from bedstone.spec.file import read_bounded
from bedstone.spec.package import PLAN, Lock

_SILENT = ("sequences", "rows_a_warp")
"""Steps of the lane that no plan tells of."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that each side holds, and what packages between them are compiled from and to."""

    lock: Lock
    a: frozenset[str]
    b: frozenset[str]
    checkpoint: Checkpoint
    cache: Path
    folder: Path

    @property
    def names(self) -> tuple[str, ...]:
        """Every rule that one side alone holds, in the order of the lane's table."""
        return tuple(rule for rule in RULES if rule in self.a ^ self.b)

    def parts(self, chosen: frozenset[str]) -> Parts:
        """A's package, but for the chosen rules, which are held or not as in B's."""
        return self._compiled((self.a - chosen) | (self.b & chosen))

    def held_in(self, side: Path, missing: frozenset[str]) -> frozenset[str] | None:
        """What was held in a package: the rules that it misses, and perhaps some it does not tell.

        None where no compile gives it again.
        """
        wanted = read_parts(side).manifest
        for length in range(len(_SILENT) + 1):
            for silent in combinations(_SILENT, length):
                if self._compiled(missing.union(silent)).manifest == wanted:
                    return missing.union(silent)
        return None

    def _compiled(self, held: frozenset[str]) -> Parts:
        number = next(n for n in count() if not (self.folder / str(n)).exists())
        lock = self.lock
        options = Options(
            "precise" if lock.numerics == "precise" else "quantized",
            lock.context,
            tuple(rule for rule in RULES if rule in held),
            lock.sequences,
            lock.sampling is not None,
        )
        request = Request(self.checkpoint, options, self.cache, lock.target)
        package = compile_checkpoint(request, self.folder / str(number), lambda _: None)
        return read_parts(package.path)


def rules_between(a: Path, b: Path, cache: Path, folder: Path, open_: ExitStack) -> Rules | str:
    """What holds rules between two packages apart, or why rules are not what they differ in.

    The checkpoint is open until `open_` ends.
    """
    if not (is_package(a) and is_package(b)):
        return "rules of the lane are those of two packages"
    compiled = [read_package(side) for side in (a, b)]
    mine, theirs = (_compiled_as(each.lock) for each in compiled)
    if mine != theirs:
        return f"A was compiled as {mine} and B as {theirs}, so rules are not all they differ in"
    fired = [frozenset(_fired(side / PLAN)) for side in (a, b)]
    checkpoint = open_weights(compiled[0])
    open_.callback(checkpoint.close)
    none = frozenset[str]()
    rules = Rules(compiled[0].lock, none, none, checkpoint, cache, folder)
    held: list[frozenset[str]] = []
    for side, missing in ((a, fired[1] - fired[0]), (b, fired[0] - fired[1])):
        found = rules.held_in(side, missing)
        if found is None:
            return f"`{side}` does not come out of a compile again as it is"
        held.append(found)
    return replace(rules, a=held[0], b=held[1])


def _compiled_as(lock: Lock) -> tuple[str, str, str, int, int, bool]:
    how = lock.identity, lock.target, lock.numerics, lock.context, lock.sequences
    return (*how, lock.sampling is not None)


def _fired(plan: Path) -> Iterator[str]:
    """The rules that a package's plan says fired in any form of the step."""
    where = f"`{plan}` is no plan of a package"
    try:
        forms = json.loads(read_bounded(plan))
        for form in forms.values():
            for fusion in form["fusions"]:
                if fusion["rule"] not in RULES:
                    raise CallerError(f"{where}: there is no rule `{fusion['rule']}`")
                yield fusion["rule"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CallerError(f"{where}: {error!r}") from error
