"""`bedstone prove kernel`: one op of a package against its Definition.

One fact a line, the verdict last. Exit 0 is PASS, 1 FAIL, 2 INCONCLUSIVE or bad input.
"""

from typing import Annotated

import typer

from bedstone.cli.document import JsonOption, print_json
from bedstone.cli.options import Device, ThreadsOption
from bedstone.cli.prove.ops import (
    CheckpointOption,
    DeviceOption,
    How,
    PackageArgument,
    SeedOption,
    prove_named,
)


def command(
    package: PackageArgument,
    op: Annotated[str, typer.Argument(metavar="OP", help="As the manifest names it.")],
    checkpoint: CheckpointOption = None,
    device: DeviceOption = Device.cpu,
    seed: SeedOption = 1,
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hold an op against its Definition, on calls of a real run and on made inputs."""
    (proof,) = prove_named(package, [op], How(checkpoint, device, seed, threads))

    from bedstone.prove.kernel.report import document, lines, overall
    from bedstone.prove.swap.verdict import EXIT

    if as_json:
        print_json(document([proof]))
    else:
        print("\n".join(lines(proof)))
    raise typer.Exit(EXIT[overall([proof])])
