"""Whether a target has every kernel that may be asked for, and why not: it fails closed.

Each entry is found, expected to be absent, or a failure: dropped by a file that hides an inherited
one, never built, or of another parameter list. No exemption excuses a drop, and one that excuses
nothing is a failure itself.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from bedstone.spec.record import nearest
from bedstone.spec.target import ModelForm
from bedstone.target.blob import Blob

Status = Literal[
    "found", "expected_absent", "dropped", "never_built", "other_abi", "stale_exemption"
]

EVERY_FORM: frozenset[ModelForm] = frozenset({"decode", "chunk", "batch"})
GOOD: frozenset[Status] = frozenset({"found", "expected_absent"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """An entry that steps of the given forms may ask for.

    `asker` asks, `without` says what is done where there is no such kernel (None: nothing can be),
    `module` should hold it and `abi` is the parameter list it should state, as far as known.
    """

    entry: str
    asker: str
    without: str | None
    module: str | None
    abi: str | None
    forms: frozenset[ModelForm] = EVERY_FORM


@dataclass(frozen=True, slots=True)
class Absence:
    """Entries of that pattern are expected to be absent; `record` says so.

    Where `own`, the record is the target's nearest: there the exemption must be of use.
    """

    pattern: str
    reason: str
    record: str
    own: bool


@dataclass(frozen=True, slots=True)
class Built:
    """What a target was compiled to; `hidden` are the modules whose sources nearer files hide."""

    blobs: Mapping[str, Blob]
    hidden: Mapping[str, Blob]

    @property
    def entries(self) -> Mapping[str, Blob]:
        """The module of each entry."""
        return {entry: blob for blob in self.blobs.values() for entry in blob.entries}


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one lookup or exemption; `note` is a reason, or how it failed."""

    entry: str
    status: Status
    module: str | None
    note: str
    forms: frozenset[ModelForm] = EVERY_FORM

    @property
    def good(self) -> bool:
        """Whether the target may be used as far as this goes."""
        return self.status in GOOD

    def __str__(self) -> str:
        return f"`{self.entry}`: {self.status.replace('_', ' ')}: {self.note}"


def audit(wanted: Iterable[Wanted], built: Built, absences: Iterable[Absence]) -> list[Finding]:
    """A finding for each lookup, then one for each exemption that excuses nothing."""
    asked, excuses = list(wanted), list(absences)
    entries = built.entries
    findings = [_judge(each, built, entries, excuses) for each in asked]
    found = {finding.entry for finding in findings if finding.status == "found"}
    missing = {each.entry for each in asked} - found
    return findings + list(_stale(excuses, found, missing))


def failures(findings: Iterable[Finding]) -> list[Finding]:
    """Those that keep a target from being used."""
    return [finding for finding in findings if not finding.good]


def _judge(
    wanted: Wanted, built: Built, entries: Mapping[str, Blob], excuses: Iterable[Absence]
) -> Finding:
    status, module, note = _verdict(wanted, built, entries, excuses)
    return Finding(wanted.entry, status, module, note, wanted.forms)


def _verdict(
    wanted: Wanted, built: Built, entries: Mapping[str, Blob], excuses: Iterable[Absence]
) -> tuple[Status, str | None, str]:
    blob = _holder(wanted, built, entries)
    if blob is not None:
        stated = blob.entries[wanted.entry]
        if None in (wanted.abi, stated) or wanted.abi == stated:
            return "found", blob.module, blob.sha256
        note = f"expected the parameters `{wanted.abi}`, the module states `{stated}`"
        return "other_abi", blob.module, note
    for module, hidden in built.hidden.items():
        if wanted.entry in hidden.entries and wanted.module in {None, module}:
            return "dropped", module, _dropped(wanted, module)
    for excuse in excuses:
        if fnmatchcase(wanted.entry, excuse.pattern):
            return "expected_absent", None, f"{excuse.reason} ({excuse.record})"
    return "never_built", wanted.module, _never_built(wanted, entries)


def _holder(wanted: Wanted, built: Built, entries: Mapping[str, Blob]) -> Blob | None:
    """The module that has the entry: where one should hold it, no other will do."""
    if wanted.module is None:
        return entries.get(wanted.entry)
    blob = built.blobs.get(wanted.module)
    return blob if blob is not None and wanted.entry in blob.entries else None


def _dropped(wanted: Wanted, module: str) -> str:
    return (
        f"the file that hides the inherited one of module `{module}` lacks it; {_loss(wanted)}: "
        "add the entry to the file that hides the other"
    )


def _never_built(wanted: Wanted, entries: Mapping[str, Blob]) -> str:
    meant = nearest(wanted.entry, list(entries))
    hint = f"; did you mean `{meant}`?" if meant else ""
    place = f"module `{wanted.module}` has no such entry" if wanted.module else "no module has it"
    return (
        f"{place}{hint}; {_loss(wanted)}: build it, or declare it under [expected_absent] with a "
        "reason"
    )


def _loss(wanted: Wanted) -> str:
    if wanted.without is None:
        return f"`{wanted.asker}` has no other launch, so models that use it do not compile"
    return f"without it `{wanted.asker}` does not fire and {wanted.without}"


def _stale(excuses: Iterable[Absence], found: set[str], missing: set[str]) -> Iterator[Finding]:
    for excuse in excuses:
        if not excuse.own:
            continue
        there = sorted(entry for entry in found if fnmatchcase(entry, excuse.pattern))
        unused = not any(fnmatchcase(entry, excuse.pattern) for entry in missing)
        if there or unused:
            why = f"`{there[0]}` is found" if there else "nothing asks for such an entry"
            note = f"{excuse.record} expects it absent, yet {why}: remove or narrow the exemption"
            yield Finding(excuse.pattern, "stale_exemption", None, note)
