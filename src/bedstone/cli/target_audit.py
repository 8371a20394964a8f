"""`bedstone target audit`: has each target every kernel that may be asked for?"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import typer

from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.environment import cache_directory
from bedstone.cli.progress import Stages
from bedstone.cli.table import columns, counted
from bedstone.cli.target_sets import AllOption, HardwareArgument, chosen_sets

if TYPE_CHECKING:
    from bedstone.build.audit import TargetAudit
    from bedstone.spec.record import RecordFault

NEGATIVE = 1
"""The exit code where an audit fails."""


def command(
    hardware: HardwareArgument = None,
    every: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """Check the records, compile each target, and look for every kernel that may be asked for."""
    from bedstone.build.audit import audit_set
    from bedstone.target.tree import check_tree

    faults = check_tree()
    cache = cache_directory() / "modules"
    with Stages() as stages:
        audits = [
            found
            for each in (() if faults else chosen_sets(hardware, every))
            for found in audit_set(each, cache, told=partial(stages.step, f"compile {each.name}"))
        ]
    passed = not faults and not any(found.failed for found in audits)
    if as_json:
        targets = [_json(found) for found in audits]
        print_json({"ok": passed, "faults": list(map(str, faults)), "targets": targets})
    else:
        print("\n".join((*_table(audits), *_failures(faults, audits), _summary(faults, audits))))
    if not passed:
        raise typer.Exit(NEGATIVE)


def _table(audits: "list[TargetAudit]") -> Iterator[str]:
    """A line for each form of each target; targets made of the same files share one."""
    from bedstone.spec.target import ModelForm

    alike: dict[tuple[str, int], list[TargetAudit]] = {}
    for found in audits:
        alike.setdefault((found.hardware, id(found.compiled)), []).append(found)
    rows = []
    for group in alike.values():
        models = ", ".join(_target(found) for found in group)
        for form in get_args(ModelForm):
            count = Counter(finding.status for finding in group[0].of_form(form))
            good = count["found"], count["expected_absent"]
            numbers = (*good, count.total() - sum(good))
            rows.append((group[0].hardware, models, form, *map(str, numbers)))
    if rows:
        header = ("hardware", "models", "form", "found", "expected absent", "failed")
        yield from (*columns([header, *rows]), "")


def _target(found: "TargetAudit") -> str:
    return found.model if found.quantization is None else f"{found.model}/{found.quantization}"


def _failures(faults: "Iterable[RecordFault]", audits: "Iterable[TargetAudit]") -> Iterator[str]:
    yield from map(str, faults)
    seen = {f"{found.hardware}: {finding}": None for found in audits for finding in found.failed}
    yield from seen


def _summary(faults: "list[RecordFault]", audits: "list[TargetAudit]") -> str:
    """The last line: what was audited, and whether it passed."""
    if faults:
        return f"audit FAILED: {counted(len(faults), 'fault')} in the records"
    failed = sum(1 for found in audits if found.failed)
    sets = {found.hardware for found in audits}
    lookups = sum(len(found.findings) for found in audits)
    targets = counted(len(audits), "target")
    what = f"{counted(len(sets), 'set')}, {targets}, {lookups} lookups"
    if failed:
        return f"audit FAILED: {what}, {counted(failed, 'target')} not fit for use"
    return f"audit passed: {what}, each found or expected to be absent"


def _json(found: "TargetAudit") -> dict[str, Any]:
    return {
        "hardware": found.hardware,
        "model": found.model,
        "quantization": found.quantization,
        "ok": not found.failed,
        "counts": dict(Counter(finding.status for finding in found.findings)),
        "findings": [
            {
                "entry": finding.entry,
                "status": finding.status,
                "module": finding.module,
                "forms": sorted(finding.forms),
                "note": finding.note,
            }
            for finding in found.findings
            if finding.status != "found"
        ],
    }
