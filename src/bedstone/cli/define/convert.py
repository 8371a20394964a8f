"""`bedstone define convert`: a document in another dialect, and what it loses there."""

import sys
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from bedstone.cli.define.options import RepairOption, read_documents
from bedstone.errors import CallerError
from bedstone.spec.definition import Definition
from bedstone.spec.dialect import Dialect, Emission
from bedstone.spec.dialect.document import emit_line, emit_text, parse_document
from bedstone.spec.dialect.emit_definition import emit_definition
from bedstone.spec.dialect.solution import emit_solution
from bedstone.spec.dialect.trace import emit_trace
from bedstone.spec.solution import Solution
from bedstone.spec.trace import Trace

REFUSED = 1


def command(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A .json, or a .jsonl of Traces.")],
    to: Annotated[
        str, typer.Option("--to", metavar="|".join(get_args(Dialect)), help="The dialect wanted.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Instead of stdout.")
    ] = None,
    repair: RepairOption = False,
) -> None:
    """Convert a document; losses go to stderr, exit 1 where its readers would refuse it."""
    if to not in get_args(Dialect):
        listed = ", ".join(f"`{name}`" for name in get_args(Dialect))
        raise CallerError(f"`--to` is `{to}`, expected one of {listed}")
    texts, fatal = [], False
    for where, parsed in read_documents(path, mend=repair):
        for each in parsed.repairs:
            print(f"{where}: repaired: {each}", file=sys.stderr)
        emission = _emit(parse_document(parsed.value).require(where), to)  # type: ignore[arg-type]
        for loss in emission.losses:
            print(f"{where}: {'refused' if loss.fatal else 'lost'}: {loss}", file=sys.stderr)
        fatal = fatal or any(loss.fatal for loss in emission.losses)
        lines = path.suffix == ".jsonl"
        texts.append(f"{emit_line(emission.value)}\n" if lines else emit_text(emission.value))
    _write(out, "".join(texts))
    if fatal:
        raise SystemExit(REFUSED)


def _emit(value: Any, to: Dialect) -> Emission:  # noqa: ANN401
    match value:
        case Definition():
            return emit_definition(value, to)
        case Solution():
            return emit_solution(value, to)
        case Trace():
            return emit_trace(value, to)
        case _:
            raise CallerError("a document of no known kind")


def _write(out: Path | None, text: str) -> None:
    if out is None:
        print(text, end="")
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CallerError(f"`{out}` cannot be written: {error.strerror or error}") from error
