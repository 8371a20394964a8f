"""`bedstone verify`: the verdict on a manifest, its protocol and its kernel files.

Exit 1 says that the manifest or its kernels are rejected. A file that cannot be read, or whose text
is not JSON at all, is bad input and exits 2: nothing in it was judged.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from bedstone.cli.document import Document, JsonOption, ManifestArgument, print_json
from bedstone.cli.guard import plain
from bedstone.cli.kernels import Folder, ModuleFile, check_modules
from bedstone.cli.protocol import describe
from bedstone.cli.table import counted
from bedstone.errors import ManifestError
from bedstone.spec.fault import Fault, ParseError
from bedstone.spec.file import read_bounded
from bedstone.spec.manifest import Manifest
from bedstone.spec.sampling import SAMPLING, parse_knobs
from bedstone.verify import check, verify
from bedstone.verify.protocol import Protocol, check_protocol, protocol
from bedstone.verify.sampling import check_knobs

_NOT_JSON = "P1"


@dataclass(frozen=True, slots=True)
class Report:
    """What was found: `manifest` None where the text is none, `protocol` None unless it fits."""

    path: Path
    manifest: Manifest | None
    faults: list[Fault]
    modules: list[ModuleFile]
    protocol: Protocol | None

    @property
    def accepted(self) -> bool:
        """Whether nothing speaks against the manifest."""
        return not self.faults and all(module.good for module in self.modules)

    def json(self) -> dict[str, Any]:
        """The JSON object of `--json`."""
        return {
            "manifest": str(self.path),
            "verdict": "accepted" if self.accepted else "rejected",
            "model": self.manifest.model if self.manifest else None,
            "faults": [asdict(fault) for fault in self.faults],
            "modules": [module.json() for module in self.modules],
            "protocol": asdict(self.protocol) if self.protocol else None,
        }


def command(
    manifest: ManifestArgument,
    as_json: JsonOption = False,
    kernels: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder of the kernel files; each must be there."),
    ] = None,
    own_sampler: Annotated[
        bool, typer.Option("--own-sampler", help="The caller samples; no program need emit tokens.")
    ] = False,
) -> None:
    """Judge a manifest: every broken rule, what a serving loop may do, changed kernel files."""
    report = judge(Document.at(manifest), kernels, sampled=not own_sampler)
    if as_json:
        print_json(report.json())
    else:
        print(plain("\n".join(_lines(report))))
    if not report.accepted:
        raise typer.Exit(1)


def judge(document: Document, kernels: Path | None, *, sampled: bool) -> Report:
    """Judge a manifest and its kernel files.

    Args:
        document: Where the manifest is.
        kernels: The folder its modules must be in, None for the package's own.
        sampled: Whether tokens must come out of the manifest.

    Returns:
        Everything there is to say.

    Raises:
        ManifestError: the file, or a package's record of a sampler, cannot be read or is none.
    """
    try:
        manifest = document.parse()
    except ParseError as error:
        if error.fault.rule == _NOT_JSON:
            raise ManifestError(f"`{document.path}`: {error}") from error
        return Report(document.path, None, [error.fault], [], None)
    faults = check(manifest)
    contract = None
    if not faults and any(program.batch for program in manifest.programs.values()):
        verified = verify(manifest)
        faults = check_protocol(verified, sampled=sampled)
        contract = None if faults else protocol(verified, sampled=sampled)
    faults += [] if faults else _record_faults(document, manifest)
    named = kernels or document.kernels
    folder = Folder(named or document.path.parent, named=named is not None)
    modules = check_modules(manifest.modules, folder)
    return Report(document.path, manifest, faults, modules, contract)


def _record_faults(document: Document, manifest: Manifest) -> list[Fault]:
    """What keeps the record of a package's sampler from fitting its manifest."""
    path = document.path.parent / SAMPLING
    if document.kernels is None or not path.exists():
        return []
    return check_knobs(parse_knobs(read_bounded(path), str(path)), manifest)


def _lines(report: Report) -> list[str]:
    bad = [module for module in report.modules if not module.good]
    problems = [*map(str, report.faults), *(f"{module} [kernel]" for module in bad)]
    if problems or report.manifest is None:
        head = f"rejected: {report.path}: {counted(len(problems), 'fault')}"
        return [head, *(f"  {problem}" for problem in problems)]
    found = sum(module.state == "found" for module in report.modules)
    lines = [
        f"accepted: {report.path}: model `{report.manifest.model}`",
        f"kernels: {found} of {len(report.modules)} files checked",
    ]
    if report.protocol is None:
        return [*lines, "protocol: none; no program declares a `batch`, so only a harness runs it"]
    return [*lines, "protocol:", *(f"  {line}" for line in describe(report.protocol))]
