"""`bedstone prove show`: what an archive of `prove swap` says, and its verdict again."""

from pathlib import Path
from typing import Annotated

import typer

from bedstone.spec.file import read_bounded


def command(
    archive: Annotated[Path, typer.Argument(metavar="FILE", help="What `--out` wrote.")],
) -> None:
    """Print a kept proof; exits as the swap did."""
    from bedstone.prove.swap.report import read_document
    from bedstone.prove.swap.verdict import EXIT

    lines, word = read_document(read_bounded(archive), str(archive))
    print("\n".join(lines))
    raise typer.Exit(EXIT[word])
