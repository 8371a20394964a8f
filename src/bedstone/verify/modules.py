"""Modules: an identity, and a source that can be fetched or is a plain label."""

import re
from collections.abc import Iterator

from bedstone.spec.manifest import Module
from bedstone.verify.facts import Named
from bedstone.verify.rule import Finding, Rows, Rule

SHA256 = re.compile(r"[0-9a-fA-F]{64}")


def identified(module: Named[Module]) -> Iterator[Finding]:
    """`sha256` is 64 hex digits."""
    if not SHA256.fullmatch(module.value.sha256):
        yield module.place.finding(
            f"has sha256 `{module.value.sha256}`, expected 64 hex digits", at="/sha256"
        )


def sourced(module: Named[Module]) -> Iterator[Finding]:
    """A source is not empty."""
    if not module.value.source:
        yield module.place.finding("has an empty source", at="/source")


def hub_reference(module: Named[Module]) -> Iterator[Finding]:
    """An `hf:` source names an organisation, a repository and a path."""
    source = module.value.source
    if source.startswith("hf:") and not _is_hub_reference(source.removeprefix("hf:")):
        yield _unfetchable(module, "hf:<org>/<repo>/<path>[@revision]")


def web_reference(module: Named[Module]) -> Iterator[Finding]:
    """An `https://` source has a host and a path."""
    source = module.value.source
    if source.startswith("https://"):
        host, _, path = source.removeprefix("https://").partition("/")
        if not host or not path or any(char.isspace() for char in source):
            yield _unfetchable(module, "https://<host>/<path>")


def known_scheme(module: Named[Module]) -> Iterator[Finding]:
    """A source with a scheme is `https:` or `hf:`; anything else is a label."""
    source = module.value.source
    if "://" in source and not source.startswith(("hf:", "https://")):
        yield _unfetchable(module, "an `https://` or `hf:` reference, or a label")


def _is_hub_reference(reference: str) -> bool:
    path, at, revision = reference.rpartition("@")
    if at and (not revision or "/" in revision):
        return False
    parts = (path if at else reference).split("/")
    return len(parts) >= 3 and all(parts) and not {".", ".."} & set(parts[2:])


def _unfetchable(module: Named[Module], expected: str) -> Finding:
    return module.place.finding(
        f"has source `{module.value.source}`, expected {expected}", at="/source"
    )


MODULE_ROWS: Rows[Named[Module]] = (
    Rule("M1", "modules", identified),
    Rule("M2", "modules", sourced),
    Rule("M3", "modules", hub_reference),
    Rule("M4", "modules", web_reference),
    Rule("M5", "modules", known_scheme),
)
