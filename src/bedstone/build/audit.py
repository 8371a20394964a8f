"""Audits of whole hardware sets: every model, quantization and form of a step, without a model."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bedstone.build.kernels import Compiled, audit_sources, catalogs, compile_modules, modules_of
from bedstone.target.audit import Finding, failures
from bedstone.target.hardware import HardwareSet
from bedstone.target.models import read_models
from bedstone.target.records import KERNELS
from bedstone.target.side_by_side import Told, untold
from bedstone.target.sources import Sources, read_sources


@dataclass(frozen=True, slots=True)
class TargetAudit:
    """The findings of one target: a model of a set with one quantization's folder, or with none."""

    hardware: str
    model: str
    quantization: str | None
    compiled: Compiled
    findings: tuple[Finding, ...]

    @property
    def failed(self) -> list[Finding]:
        """What keeps the target from being used."""
        return failures(self.findings)

    def of_form(self, form: str) -> list[Finding]:
        """The findings that concern one form of a step."""
        return [finding for finding in self.findings if form in finding.forms]


def compile_set(sources: Sources, cache: Path, told: Told = untold) -> Compiled:
    """Every module that the library has for the hardware set, from a target's sources."""
    kernels = (kernel for held in catalogs(sources.hardware) for kernel in held.every)
    return compile_modules(sources, modules_of(kernels), cache, told)


def audit_set(
    hardware: HardwareSet, cache: Path, kernels: Path = KERNELS, told: Told = untold
) -> Iterator[TargetAudit]:
    """An audit for each target of a set; what is compiled from the same files is compiled once."""
    done: dict[tuple[Path, ...], tuple[Compiled, tuple[Finding, ...]]] = {}
    for model in read_models(hardware, kernels).values():
        for quantization in (*model.quantizations, None):
            sources = read_sources(hardware, model, quantization, kernels)
            if sources.folders not in done:
                compiled = compile_set(sources, cache, told)
                done[sources.folders] = compiled, tuple(audit_sources(sources, compiled.built))
            compiled, findings = done[sources.folders]
            yield TargetAudit(hardware.name, model.name, quantization, compiled, findings)
