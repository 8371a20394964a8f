"""Evidence that kernels are right, and that a package may take another's place."""

COMMANDS = {
    "swap": "bedstone.cli.prove.swap",
    "kernel": "bedstone.cli.prove.kernel",
    "package": "bedstone.cli.prove.package",
    "show": "bedstone.cli.prove.show",
}
"""Each subcommand and the module whose function `command` it is, in the order of the help."""
