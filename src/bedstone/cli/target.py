"""Say which kernels there are for which machine and model, build them and audit them."""

COMMANDS = {
    "list": "bedstone.cli.target_list",
    "explain": "bedstone.cli.target_explain",
    "build": "bedstone.cli.target_build",
    "audit": "bedstone.cli.target_audit",
}
"""The subcommands of `bedstone target`."""
