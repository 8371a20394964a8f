"""The manifest a command line argument stands for: a file, or the one inside a package."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from bedstone.errors import ManifestError
from bedstone.spec.codec import parse
from bedstone.spec.fault import ParseError
from bedstone.spec.file import read_bounded
from bedstone.spec.manifest import Manifest
from bedstone.spec.package import KERNELS, MANIFEST
from bedstone.verify import Verified, check, verify

ManifestArgument = Annotated[
    Path, typer.Argument(metavar="MANIFEST|PACKAGE", help="A manifest, or a compiled package.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@dataclass(frozen=True, slots=True)
class Document:
    """A manifest's file; `kernels` is the folder of the package it belongs to, if any."""

    path: Path
    kernels: Path | None

    @staticmethod
    def at(path: Path) -> "Document":
        """The document of a package's folder or of a manifest file."""
        if os.path.isdir(path):  # unlike Path.is_dir: no error where the path can be none
            return Document(path / MANIFEST, path / KERNELS)
        return Document(path, None)

    def parse(self) -> Manifest:
        """Read the manifest; a `ParseError` says where its text is none."""
        return parse(read_bounded(self.path))

    def require_verified(self) -> Verified:
        """Read a manifest that must keep every rule.

        Returns:
            The manifest with its proof.

        Raises:
            ManifestError: it does not; the message says how many and the first.
        """
        try:
            manifest = self.parse()
        except ParseError as error:
            raise ManifestError(f"`{self.path}` is no manifest: {error}") from error
        faults = check(manifest)
        if faults:
            raise ManifestError(
                f"`{self.path}` breaks {len(faults)} rule(s), the first: {faults[0]}; "
                f"`bedstone verify` lists them"
            )
        return verify(manifest)


def print_json(value: Any) -> None:  # noqa: ANN401  (any JSON value)
    """Print one JSON object; escapes stand for what stdout cannot spell."""
    spells_all = (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"
    print(json.dumps(value, indent=2, ensure_ascii=not spells_all))
