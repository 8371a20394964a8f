"""Arguments that several of these subcommands take, and the documents they stand for."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from bedstone.errors import CallerError
from bedstone.spec.dialect.document import Parsed, parse_lines, parse_text

SetArgument = Annotated[
    Path, typer.Argument(metavar="SET", help="A folder laid out as FlashInfer-Bench's data set.")
]
RepairOption = Annotated[
    bool,
    typer.Option("--repair", help="Mend commas and fragments; each repair is listed."),
]

ReplaceOption = Annotated[
    bool, typer.Option("--replace", help="Write over what a folder holds that is no export.")
]

_SHOWN = 8


def read_documents(path: Path, *, mend: bool) -> list[tuple[str, Parsed]]:
    """Read the JSON values of a file, one a line in a `.jsonl`.

    Args:
        path: The file.
        mend: Repair what can be.

    Returns:
        Each value after the name errors call it by.

    Raises:
        CallerError: the file cannot be read.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise CallerError(f"`{path}` cannot be read: {error.strerror or error}") from error
    if path.suffix == ".jsonl":
        return [(f"{path}:{number}", parsed) for number, parsed in parse_lines(text, mend=mend)]
    return [(str(path), parse_text(text, mend=mend))]


def require_known(option: str, asked: Sequence[str], known: Collection[str]) -> None:
    """Refuse names that are of nothing: what was meant would be passed over without a word.

    Raises `CallerError`: it names the first, and some of those there are.
    """
    for name in asked:
        if name not in known:
            shown = ", ".join(f"`{each}`" for each in sorted(known)[:_SHOWN])
            more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
            raise CallerError(f"`{option} {name}`: expected one of {shown or 'none'}{more}")


def sizes_of(given: list[str]) -> dict[str, int]:
    """The sizes of options such as `M=16`; a `CallerError` for anything else."""
    sizes = {}
    for text in given:
        name, mark, value = text.partition("=")
        if not (name and mark and value.isdecimal()):
            raise CallerError(f"`{text}` is no size: expected `AXIS=INTEGER`")
        sizes[name] = int(value)
    return sizes


def plain(value: Any) -> Any:  # noqa: ANN401  (any dataclass field)
    """A value as JSON has it: tuples as lists."""
    return list(value) if isinstance(value, tuple) else value
