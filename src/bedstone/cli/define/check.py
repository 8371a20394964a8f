"""`bedstone define check`: what readers will say of a file or a whole set."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from bedstone.cli.define.options import RepairOption, read_documents
from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.table import counted
from bedstone.errors import BedstoneError
from bedstone.spec.definition import Definition
from bedstone.spec.dialect.document import Parsed, parse_document
from bedstone.spec.finding import Finding
from bedstone.spec.lint import lint

REFUSED = 1


@dataclass(frozen=True, slots=True)
class Checked:
    """A document and all that was found about it."""

    where: str
    dialect: str | None
    repairs: tuple[str, ...]
    findings: tuple[Finding, ...]

    def at_fault(self) -> bool:
        """Whether it cannot be used."""
        return any(finding.severity == "error" for finding in self.findings)


def command(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Files, or folders to search.")
    ],
    repair: RepairOption = False,
    hints: Annotated[
        bool, typer.Option("--hints/--no-hints", help="Also tell what is against convention.")
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Check Definitions, Solutions, Workloads and Traces; exits 1 where one cannot be used."""
    checked = [each for path in _files(paths) for each in _check(path, mend=repair, hints=hints)]
    wrong = sum(each.at_fault() for each in checked)
    if as_json:
        print_json({"documents": [asdict(each) for each in checked], "refused": wrong})
    else:
        for each in checked:
            for line in (*(f"repaired: {r}" for r in each.repairs), *map(_line, each.findings)):
                print(f"{each.where}: {line}")
        print(f"{counted(len(checked), 'document')}, {wrong} refused")
    if wrong:
        raise SystemExit(REFUSED)


def _files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.suffix in (".json", ".jsonl"))
        else:
            yield path


def _check(path: Path, *, mend: bool, hints: bool) -> Iterator[Checked]:
    try:
        documents = read_documents(path, mend=mend)
    except BedstoneError as error:
        yield Checked(str(path), None, (), (Finding("error", "", str(error)),))
        return
    for where, parsed in documents:
        yield _checked(where, parsed, hints=hints)


def _checked(where: str, parsed: Parsed, *, hints: bool) -> Checked:
    reading = parse_document(parsed.value)
    findings = reading.findings
    if hints and reading.usable and isinstance(reading.value, Definition):
        findings += lint(reading.value)
    return Checked(where, reading.dialect, tuple(map(str, parsed.repairs)), findings)


def _line(finding: Finding) -> str:
    return f"{finding.severity}: {finding}"
