"""Which release this is."""

VERSION = "0.1.0"


def version_note(built: str, running: str) -> str | None:
    """What to say of a package built by one version and run by another; None for the same release.

    A local label (`1.4.0+cu130`) tells flavours of one release apart and is no mismatch.
    """
    if built.partition("+")[0] == running.partition("+")[0]:
        return None
    return f"the package was compiled by bedstone {built}, this is bedstone {running}"
