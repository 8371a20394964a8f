"""The mathematics of the ops that launches compute, by op class; references in plain PyTorch."""

from textwrap import dedent

from bedstone.library.mathematics.pieces import pieces_for
from bedstone.library.template import Template
from bedstone.spec.definition import TensorSpec


def _f32(*shape: str, constant: bool = False) -> TensorSpec:
    return TensorSpec(shape, "float32", constant=constant)


def _i32(*shape: str) -> TensorSpec:
    return TensorSpec(shape, "int32")


def _code(text: str) -> str:
    return f"import torch\n\n\n{dedent(text).strip()}\n"


_ROWS = _f32("rows", "width")
_WIDTH = _f32("width", constant=True)

_ACTIVATIONS = """
    def silu(x):
        return x / (1 + torch.exp(-x))

    def gelu_tanh(x):
        inner = (2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + torch.tanh(inner))

    def sigmoid(x):
        return 1 / (1 + torch.exp(-x))

    def softplus(x):
        return torch.clamp(x, min=0) + torch.log1p(torch.exp(-torch.abs(x)))
"""

_ROTATE = """
    def rotate(x, position, inv_freq):
        rot, half = $rot, $rot // 2
        angle = position[:, None, None] * inv_freq
        cos, sin = torch.cos(angle) * $factor, torch.sin(angle) * $factor
        first = torch.arange(half) if $kind == 'neox' else 2 * torch.arange(half)
        second = first + (half if $kind == 'neox' else 1)
        out = x.clone()
        a, b = x[..., first], x[..., second]
        out[..., first] = a * cos - b * sin
        out[..., second] = b * cos + a * sin
        return out
"""

DEFINITIONS: dict[str, Template] = {
    "Embed": Template(
        name="embed_v${vocab}_h${width}",
        op_type="embed",
        description="Rows of a table.",
        inputs={"ids": _i32("rows"), "table": _f32("vocab", "width", constant=True)},
        outputs={"y": _ROWS},
        sizes=("vocab", "width"),
        reference=_code("""
            def run(ids, table):
                return table[ids.long()]
        """),
    ),
    "Norm": Template(
        name="rmsnorm_h${width}_u${unit}_eps${eps}_p${plus_one}",
        op_type="rmsnorm",
        description="Each unit of a row over its root mean square, times a weight.",
        inputs={"x": _ROWS, "w": _f32("unit", constant=True)},
        outputs={"y": _ROWS},
        sizes=("width", "unit"),
        options=("eps", "plus_one"),
        reference=_code("""
            def run(x, w):
                units = x.reshape(x.shape[0], -1, $unit)
                mean_square = (units * units).mean(-1, keepdim=True)
                gain = 1 + w if $plus_one else w
                return (units / torch.sqrt(mean_square + $eps) * gain).reshape(x.shape)
        """),
    ),
    "AddNorm": Template(
        name="fused_add_rmsnorm_h${width}_eps${eps}_p${plus_one}",
        op_type="fused_add_rmsnorm",
        description="A sum and the norm of each row of it; both are results.",
        inputs={"a": _ROWS, "b": _ROWS, "w": _WIDTH},
        outputs={"sum": _ROWS, "y": _ROWS},
        sizes=("width",),
        options=("eps", "plus_one"),
        tags=("fused",),
        reference=_code("""
            def run(a, b, w):
                total = a + b
                mean_square = (total * total).mean(-1, keepdim=True)
                gain = 1 + w if $plus_one else w
                return total, total / torch.sqrt(mean_square + $eps) * gain
        """),
    ),
    "L2Norm": Template(
        name="l2norm_h${width}_u${unit}_eps${eps}",
        op_type="norm",
        description="Each unit of a row over its length.",
        inputs={"x": _ROWS},
        outputs={"y": _ROWS},
        sizes=("width", "unit"),
        options=("eps",),
        reference=_code("""
            def run(x):
                units = x.reshape(x.shape[0], -1, $unit)
                square = (units * units).sum(-1, keepdim=True)
                return (units / torch.sqrt(square + $eps)).reshape(x.shape)
        """),
    ),
    "Linear": Template(
        name="gemm_n${n}_k${k}",
        op_type="gemm",
        description="x by the transpose of w.",
        inputs={"x": _f32("rows", "k"), "w": _f32("n", "k", constant=True)},
        outputs={"y": _f32("rows", "n")},
        sizes=("n", "k"),
        reference=_code("""
            def run(x, w):
                return torch.matmul(x, w.T)
        """),
    ),
    "AddedLinear": Template(
        name="fused_gemm_add_n${n}_k${k}",
        op_type="gemm",
        description="x by the transpose of w, and a tensor added to it.",
        inputs={
            "x": _f32("rows", "k"),
            "w": _f32("n", "k", constant=True),
            "add": _f32("rows", "n"),
        },
        outputs={"y": _f32("rows", "n")},
        sizes=("n", "k"),
        tags=("fused",),
        reference=_code("""
            def run(x, w, add):
                return torch.matmul(x, w.T) + add
        """),
    ),
    "CappedLinear": Template(
        name="fused_gemm_softcap_n${n}_k${k}_cap${cap}",
        op_type="gemm",
        description="x by the transpose of w, each element bent to stay within a cap.",
        inputs={"x": _f32("rows", "k"), "w": _f32("n", "k", constant=True)},
        outputs={"y": _f32("rows", "n")},
        sizes=("n", "k"),
        options=("cap",),
        tags=("fused",),
        reference=_code("""
            def run(x, w):
                return $cap * torch.tanh(torch.matmul(x, w.T) / $cap)
        """),
    ),
    "Glu": Template(
        name="glu_${fn}_n${n}_k${k}",
        op_type="glu",
        description="An activation of one product times another of the same rows.",
        inputs={
            "x": _f32("rows", "k"),
            "gate": _f32("n", "k", constant=True),
            "up": _f32("n", "k", constant=True),
        },
        outputs={"y": _f32("rows", "n")},
        sizes=("n", "k"),
        options=("fn",),
        tags=("fused",),
        reference=_code(_ACTIVATIONS)
        + _code("""
            def run(x, gate, up):
                act = {'silu': silu, 'gelu_tanh': gelu_tanh}[$fn]
                return act(torch.matmul(x, gate.T)) * torch.matmul(x, up.T)
        """),
    ),
    "Add": Template(
        name="add_h${width}",
        op_type="elementwise",
        description="The sum of two tensors.",
        inputs={"a": _ROWS, "b": _ROWS},
        outputs={"y": _ROWS},
        sizes=("width",),
        reference=_code("""
            def run(a, b):
                return a + b
        """),
    ),
    "Mul": Template(
        name="mul_h${width}",
        op_type="elementwise",
        description="The product of two tensors, element by element.",
        inputs={"a": _ROWS, "b": _ROWS},
        outputs={"y": _ROWS},
        sizes=("width",),
        reference=_code("""
            def run(a, b):
                return a * b
        """),
    ),
    "Act": Template(
        name="${fn}_h${width}",
        op_type="elementwise",
        description="An activation of each element.",
        inputs={"x": _ROWS},
        outputs={"y": _ROWS},
        sizes=("width",),
        options=("fn",),
        reference=_code(_ACTIVATIONS)
        + _code("""
            def run(x):
                every = {'silu': silu, 'gelu_tanh': gelu_tanh, 'sigmoid': sigmoid,
                         'softplus': softplus}
                return every[$fn](x)
        """),
    ),
    "Scale": Template(
        name="scale_h${width}_by${by}",
        op_type="elementwise",
        description="Each element times a constant.",
        inputs={"x": _ROWS},
        outputs={"y": _ROWS},
        sizes=("width",),
        options=("by",),
        reference=_code("""
            def run(x):
                return x * $by
        """),
    ),
    "Softcap": Template(
        name="softcap_h${width}_cap${cap}",
        op_type="elementwise",
        description="Each element bent to stay within a cap.",
        inputs={"x": _ROWS},
        outputs={"y": _ROWS},
        sizes=("width",),
        options=("cap",),
        reference=_code("""
            def run(x):
                return $cap * torch.tanh(x / $cap)
        """),
    ),
    "ArgMax": Template(
        name="argmax_v${vocab}",
        op_type="sampling",
        description="The index of the largest value of each row, the lowest of equal ones.",
        inputs={"x": _f32("rows", "vocab")},
        outputs={"y": _i32("rows")},
        sizes=("vocab",),
        reference=_code("""
            def run(x):
                largest = x == x.amax(-1, keepdim=True)
                index = torch.arange(x.shape[-1], dtype=torch.int32)
                return torch.where(largest, index, x.shape[-1]).amin(-1)
        """),
    ),
    "Sample": Template(
        name="sample_v${vocab}",
        op_type="sampling",
        description="A token of each row of logits, drawn as settings say for the position behind.",
        inputs={
            "x": _f32("rows", "vocab"),
            "temperature": _f32("rows"),
            "top_k": _i32("rows"),
            "top_p": _f32("rows"),
            "min_p": _f32("rows"),
            "seed": TensorSpec(("rows",), "int64"),
            "position": _i32("rows"),
        },
        outputs={"y": _i32("rows")},
        sizes=("vocab",),
        reference=f"import torch\n\n\n{pieces_for('drawn_of(')}\n\n\n"
        + dedent("""
            def run(x, temperature, top_k, top_p, min_p, seed, position):
                y = torch.full((len(x),), -1, dtype=torch.int32)
                for row in range(len(x)):
                    logits = x[row].double()
                    if bool(logits.isfinite().all()):
                        y[row] = drawn_of(logits, logits, temperature[row].double(), top_k[row],
                                          top_p[row].double(), min_p[row].double(), seed[row],
                                          position[row] + 1)
                return y
        """).lstrip(),
    ),
    "Finish": Template(
        name="finish",
        op_type="sampling",
        description="Drawn tokens and the next positions; where a row has none all stay, at zeros.",
        inputs={"x": _i32("rows"), "position": _i32("rows")},
        outputs={"y": _i32("rows"), "next_position": _i32("rows")},
        reference=_code("""
            def run(x, position):
                good = (x >= 0).all().int()
                return x * good, position + good
        """),
    ),
    "Rope": Template(
        name="rope_${kind}_h${heads}_d${head_dim}_r${rot}_f${factor}",
        op_type="rope",
        description="Pairs of each head's values turned by the row's position.",
        inputs={
            "x": _f32("rows", "heads", "head_dim"),
            "position": _i32("rows"),
            "inv_freq": _f32("half", constant=True),
        },
        outputs={"y": _f32("rows", "heads", "head_dim")},
        sizes=("heads", "head_dim", "rot"),
        options=("kind", "factor"),
        computed={"half": "rot // 2"},
        reference=_code(_ROTATE)
        + _code("""
            def run(x, position, inv_freq):
                return rotate(x, position, inv_freq)
        """),
    ),
    "NormRope": Template(
        name="norm_rope_${kind}_h${heads}_d${head_dim}_r${rot}_f${factor}_eps${eps}_p${plus_one}",
        op_type="rope",
        description="Each head's norm, then its rotation.",
        inputs={
            "x": _f32("rows", "heads", "head_dim"),
            "w": _f32("head_dim", constant=True),
            "position": _i32("rows"),
            "inv_freq": _f32("half", constant=True),
        },
        outputs={"y": _f32("rows", "heads", "head_dim")},
        sizes=("heads", "head_dim", "rot"),
        options=("kind", "factor", "eps", "plus_one"),
        computed={"half": "rot // 2"},
        tags=("fused",),
        reference=_code(_ROTATE)
        + _code("""
            def run(x, w, position, inv_freq):
                mean_square = (x * x).mean(-1, keepdim=True)
                gain = 1 + w if $plus_one else w
                normed = x / torch.sqrt(mean_square + $eps) * gain
                return rotate(normed, position, inv_freq)
        """),
    ),
    "Attention": Template(
        name="gqa_causal_h${heads}_kv${groups}_qk${dk}_vo${dv}_s${scale}_w${window}_c${softcap}",
        op_type="gqa",
        description="Causal attention of the last rows of a sequence over all of its rows.",
        inputs={
            "q": _f32("rows", "heads", "dk"),
            "k": _f32("length", "groups", "dk"),
            "v": _f32("length", "groups", "dv"),
        },
        outputs={"y": _f32("rows", "heads", "dv")},
        sizes=("heads", "groups", "dk", "dv"),
        options=("scale", "window", "softcap"),
        constraints=("rows <= length",),
        reference=_code("""
            def run(q, k, v):
                rows, length, share = q.shape[0], k.shape[0], q.shape[1] // k.shape[1]
                k, v = k.repeat_interleave(share, 1), v.repeat_interleave(share, 1)
                scores = torch.einsum('rhd,lhd->hrl', q, k) * $scale
                if $softcap > 0:
                    scores = $softcap * torch.tanh(scores / $softcap)
                at = torch.arange(length - rows, length)[:, None]
                seen = torch.arange(length)[None, :]
                hidden = seen > at
                if $window > 0:
                    hidden = hidden | (seen <= at - $window)
                scores = scores.masked_fill(hidden, -torch.inf)
                weights = torch.exp(scores - scores.amax(-1, keepdim=True))
                weights = weights / weights.sum(-1, keepdim=True)
                return torch.einsum('hrl,lhd->rhd', weights, v)
        """),
    ),
}
"""Each op class of the step and of the lane that stands alone, by its name.

`window` and `softcap` are 0 where there is none.
"""
