"""Every kernel the lane may ask its shim for, as a table: who asks, and what happens without it.

The table is what a kernel set is audited against, on a machine without the device and without a
model. An entry that the lane asks for and no row names is a defect of this table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from bedstone.graph.step import FormName
from bedstone.library.coding import INT8, Coding
from bedstone.spec.dtype import FORMATS

EVERY_FORM: frozenset[FormName] = frozenset({"decode", "chunk", "batch"})


@dataclass(frozen=True, slots=True)
class Lookup:
    """An entry that steps of the given forms may ask for.

    `asker` is the class of op or the rule that asks. `without` says what a plan does where there is
    no such kernel; None means that it has no other launch for the op.
    """

    entry: str
    asker: str
    without: str | None
    forms: frozenset[FormName]


@dataclass(frozen=True, slots=True)
class _Row:
    """Entries of one asker: names in braces stand for each of their values in `_AXES`."""

    asker: str
    entries: str
    without: str | None = None
    forms: frozenset[FormName] = EVERY_FORM


_AXES: dict[str, tuple[str, ...]] = {
    "format": tuple(FORMATS),
    "x": ("", "_q", "_r"),
    "r": ("", "_r"),
    "b": ("", "_b"),
    "n": ("", "_n"),
    "p": ("", "_p"),
    "rows": ("", "_rows"),
    "place": ("", "_rows", "_cols"),
    "quant": ("_q", "_fq"),
    "pre": ("", "_pre"),
    "split": ("", "_split"),
    "shared": ("_s", "_sg"),
    "experts": ("", "_s", "_sg"),
    "count": ("2", "3", "4"),
    "act": ("silu", "gelu_tanh", "sigmoid", "softplus"),
}
"""`x` is how a product reads its input: coded or rounded only where its matrix can meet that."""

_APART = "each op is launched by itself"
_COPIED = "the part is copied out first"
_QUANTIZED_APART = "a launch of its own quantizes the result"

_ROWS = (
    _Row("Embed", "embed_{format}"),
    _Row("Norm", "norm"),
    _Row("L2Norm", "l2norm"),
    _Row("Linear", "linear{x}_{format}"),
    _Row("Add", "add add_row"),
    _Row("Mul", "mul"),
    _Row("Act", "{act}"),
    _Row("Scale", "scale"),
    _Row("Softcap", "softcap"),
    _Row("ArgMax", "argmax argmax_rows"),
    _Row("Sample", "sample sample_rows sample_carried sample_carried_rows"),
    _Row("Finish", "finish finish_rows"),
    _Row("Row", "take_row"),
    _Row("Part", "take_part"),
    _Row("Concat", "concat"),
    _Row("Set", "set_rows set_cols copy_rows"),
    _Row("Rope", "rope"),
    _Row("Attention", "attention{r} attention_in{r}"),
    _Row("Attention", "attention_flat{r} gather", forms=frozenset({"chunk"})),
    _Row("HLinear", "hlinear{x}_{format} hlinear_t_{format}"),
    _Row("Score", "score"),
    _Row("TopK", "topk{b}"),
    _Row("Renorm", "renorm"),
    _Row("XLinear", "xlinear{x}_{format}"),
    _Row("XSum", "xsum"),
    _Row("Decay", "decay"),
    _Row("Conv", "conv"),
    _Row("Delta", "delta"),
    _Row("quantize", "quantize"),
    _Row("embed_scale", "embed_scaled_{format}", _APART),
    _Row("linear_bias", "linear{x}_{format}_b", _APART),
    _Row("logit_cap", "linear{x}_{format}_cap", _APART),
    _Row("linear_add", "linear{x}_{format}{b}_add", _APART),
    _Row("glu", "glu{x}_{format}", _APART),
    _Row("expert_glu", "xglu{x}_{format}", _APART),
    _Row("split_attention", "attention_in_split{r}", _APART),
    _Row("split_attention", "attention_flat_split{r}", _APART, frozenset({"chunk"})),
    _Row("attn_output_gate", "attention_gate{r}", _APART),
    _Row("gated_norm", "gated_norm", _APART),
    _Row("delta_gates", "delta_gates", _APART),
    _Row("qk_norm_rope", "rope_n", _APART),
    _Row("rope_set", "rope{n}{place}", _APART),
    _Row("norm_set", "norm_cols", _APART),
    _Row("linear_set", "linear{x}_{format}{b}_rows", _APART),
    _Row("route", "route{x}_{format}{b}", _APART),
    _Row("expert_sum", "xdown{x}_{format}", _APART),
    _Row("shared_expert", "xglu{shared}{x}_{format} xdown{shared}{x}_{format}", _APART),
    _Row("residual_norm", "add_norm", _APART),
    _Row("sandwich_norm", "add_norm_pre", _APART),
    _Row("conv_parts", "conv_parts2 conv_parts3", _APART),
    _Row("rope_parts", "rope_parts{n}{place}", _APART),
    _Row("gemv_parts", "parts{count}{x}_{format}{b}{rows}", _APART),
    _Row("a view", "norm_p norm_p_cols quantize_p {act}_p", _COPIED),
    _Row("a view", "rope{n}_p{place} rope_parts{n}_p{place}", _COPIED),
    _Row("fuse_quant", "norm{quant} add_norm{pre}{quant} gated_norm{quant}", _QUANTIZED_APART),
    _Row("fuse_quant", "attention{r}{quant} attention_gate{r}{quant}", _QUANTIZED_APART),
    _Row("fuse_quant", "attention_in{split}{r}{quant}", _QUANTIZED_APART),
    _Row(
        "fuse_quant",
        "attention_flat{split}{r}{quant} gather{quant}",
        _QUANTIZED_APART,
        frozenset({"chunk"}),
    ),
    _Row("fuse_quant", "glu{x}_{format}{quant} hlinear{x}_{format}{quant}", _QUANTIZED_APART),
    _Row("fuse_quant", "xglu{experts}{x}_{format}{quant}", _QUANTIZED_APART),
    _Row("fuse_quant", "mul{quant} take_row{quant} copy_rows{quant}", _QUANTIZED_APART),
)


def lookups(coding: Coding = INT8) -> tuple[Lookup, ...]:
    """Every lookup of a lane that codes so, each entry once, in the order of the table."""
    found = (lookup for row in _ROWS for lookup in _expanded(row, coding))
    return tuple({lookup.entry: lookup for lookup in found}.values())


def _expanded(row: _Row, coding: Coding) -> Iterator[Lookup]:
    for template in row.entries.split():
        axes = [name for name in _AXES if f"{{{name}}}" in template]
        for values in product(*(_AXES[name] for name in axes)):
            chosen = dict(zip(axes, values, strict=True))
            if chosen.get("r") and not coding.rounds:
                continue
            # a matrix of a format that no product reads codes for asks for none that does
            met = {"_q": coding.formats, "_r": coding.rounds}.get(chosen.get("x", ""))
            if met is None or chosen.get("format") in met:
                yield Lookup(template.format(**chosen), row.asker, row.without, row.forms)
