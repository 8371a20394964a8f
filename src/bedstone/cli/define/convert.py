"""`bedstone define convert`: a document in another dialect, and what it loses there."""

import sys
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from bedstone.cli.define.options import RepairOption, ReplaceOption, read_documents
from bedstone.cli.table import counted
from bedstone.cli.written import write_file
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
    path: Annotated[
        Path,
        typer.Argument(metavar="FILE|SET", help="A .json, a .jsonl of Traces, or a whole set."),
    ],
    to: Annotated[
        str, typer.Option("--to", metavar="|".join(get_args(Dialect)), help="The dialect wanted.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE|SET", help="Instead of stdout; of a set, where."),
    ] = None,
    repair: RepairOption = False,
    replace: ReplaceOption = False,
) -> None:
    """Convert a document or a set; losses go to stderr.

    Exits 1 where a document would be refused by its readers. Of a set, what they would refuse is
    left out.
    """
    if to not in get_args(Dialect):
        listed = ", ".join(f"`{name}`" for name in get_args(Dialect))
        raise CallerError(f"`--to` is `{to}`, expected one of {listed}")
    if path.is_dir():
        _convert_set(path, to, out, replace=replace)
        return
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


def _convert_set(path: Path, to: str, out: Path | None, *, replace: bool) -> None:
    from bedstone.prove.interchange import KINDS, write_for_flashinfer_bench
    from bedstone.prove.place import require_replaceable, written_beside
    from bedstone.prove.trace_set import read_trace_set

    if to != "fib" or out is None:
        raise CallerError("a set is converted `--to fib`, into the folder that `--out` names")
    require_replaceable(out, replace=replace)
    with written_beside(out) as folder:
        done = write_for_flashinfer_bench(read_trace_set(path), folder)
    for line in done.lines:
        print(line, file=sys.stderr)
    rows = [counted(done.written[kind], kind) for kind in KINDS]
    left = ", ".join(counted(n, kind) for kind in KINDS if (n := done.left_out[kind]))
    print(", ".join(rows) + (f"; left out: {left}" if left else ""))


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
    write_file(out, text)
