"""Hints about convention: what readers understand and yet will stumble over."""

import re

from bedstone.spec.definition import Definition
from bedstone.spec.finding import Finding, Findings
from bedstone.spec.source import SourceError, imported, signature_faults

# fmt: off
OP_TYPES = frozenset((
    "gemm", "grouped_gemm", "gqa", "gqa_paged", "gqa_ragged", "mla_paged", "mla_ragged",
    "dsa_paged", "gdn", "mamba_ssu", "moe", "norm", "rmsnorm", "fused_add_rmsnorm", "rope",
    "sampling",
))
NAMESPACES = frozenset((
    "stage", "model", "quantization", "quant", "status", "fi_api", "tp", "ep", "gpu", "layout",
    "routing", "sparse",
))
# fmt: on
FLAGS = frozenset(("fused",))

_CONSTANTS = re.compile(r"(^|_)[A-Za-z]+\d+(_|$)")


def lint(definition: Definition) -> tuple[Finding, ...]:
    """Hints about a Definition's name, tags, op type and reference."""
    findings = Findings()
    if definition.op_type not in (OP_TYPES | {None}):
        message = f"`{definition.op_type}` is not among the published ones"
        findings.add("hint", ("op_type",), message)
    if definition.const_axes and not _CONSTANTS.search(definition.name):
        message = "expected the constants in the name, as in `gemm_n4096_k4096`"
        findings.add("hint", ("name",), message)
    for at, tag in enumerate(definition.tags):
        namespace, mark, _ = tag.partition(":")
        if namespace.strip() not in (NAMESPACES if mark else FLAGS):
            findings.add("hint", ("tags", at), f"`{tag}` is in no published namespace")
    _lint_reference(definition, findings)
    return findings.all()


def _lint_reference(definition: Definition, findings: Findings) -> None:
    try:
        modules = imported(definition.reference)
        faults = signature_faults(definition)
    except SourceError:
        return
    if "torch.nn.functional" in modules:
        message = "`torch.nn.functional` hides steps that a reference should show"
        findings.add("hint", ("reference",), message)
    for fault in faults:
        findings.add("warning", ("reference",), fault)
