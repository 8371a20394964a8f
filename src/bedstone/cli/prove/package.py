"""`bedstone prove package`: every op of a package against its Definition.

A row for each op, the verdict on all last. Exit 0 is PASS, 1 FAIL, 2 INCONCLUSIVE or bad input.
"""

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
    checkpoint: CheckpointOption = None,
    device: DeviceOption = Device.cpu,
    seed: SeedOption = 1,
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hold every op against its Definition, and list the worst error of each."""
    proofs = prove_named(package, None, How(checkpoint, device, seed, threads))

    from bedstone.prove.kernel.report import document, overall, table
    from bedstone.prove.swap.verdict import EXIT

    if as_json:
        print_json(document(proofs))
    else:
        print("\n".join(table(proofs)))
    raise typer.Exit(EXIT[overall(proofs)])
