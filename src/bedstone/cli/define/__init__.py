"""Definitions of kernels: check them, hold Solutions against them, choose the best."""

COMMANDS = {
    "list": "bedstone.cli.define.list",
    "show": "bedstone.cli.define.show",
    "check": "bedstone.cli.define.check",
    "convert": "bedstone.cli.define.convert",
    "export": "bedstone.cli.define.export",
    "build": "bedstone.cli.define.build",
    "bench": "bedstone.cli.define.bench",
    "rank": "bedstone.cli.define.rank",
    "apply": "bedstone.cli.define.apply",
}
"""Each subcommand and the module whose function `command` it is, in the order of the help."""
