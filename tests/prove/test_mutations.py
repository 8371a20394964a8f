"""A kernel that is almost right is wrong: one sign, one row, one output left over."""

import pytest

from bedstone.spec.workload import Workload
from definitions import definition
from prove.runs import run

ROWS = {"shape": ["rows", "width"], "dtype": "bfloat16"}
WIDTH = {"shape": ["width"], "dtype": "bfloat16"}

NORM = definition(
    name="rmsnorm_h64",
    op_type="rmsnorm",
    axes={"rows": {"type": "var"}, "width": {"type": "const", "value": 64}},
    inputs={"x": ROWS, "weight": WIDTH},
    outputs={"y": ROWS},
    reference="import torch\n\ndef run(x, weight):\n    wide = x.float()\n"
    "    scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)\n"
    "    return (wide * scale * weight.float()).to(x.dtype)\n",
)
GEMM = definition(
    name="gemm_n48_k64",
    op_type="gemm",
    axes={"rows": {"type": "var"}, "width": {"type": "const", "value": 64},
          "n": {"type": "const", "value": 48}},
    inputs={"x": ROWS, "w": {"shape": ["n", "width"], "dtype": "bfloat16"}},
    outputs={"y": {"shape": ["rows", "n"], "dtype": "bfloat16"}},
    reference="def run(x, w):\n    return (x.float() @ w.float().T).to(x.dtype)\n",
)  # fmt: skip
ATTENTION = definition(
    name="gqa_paged_decode_h4_kv2_d16_ps4",
    op_type="gqa_paged",
    axes={"batch_size": {"type": "var"}, "num_pages": {"type": "var"},
          "len_indptr": {"type": "var"}, "num_kv_indices": {"type": "var"},
          "heads": {"type": "const", "value": 4}, "kv_heads": {"type": "const", "value": 2},
          "head_dim": {"type": "const", "value": 16}, "page_size": {"type": "const", "value": 4}},
    constraints=["len_indptr == batch_size + 1", "num_kv_indices == kv_indptr[-1].item()"],
    inputs={"q": {"shape": ["batch_size", "heads", "head_dim"], "dtype": "float32"},
            **{n: {"shape": ["num_pages", "page_size", "kv_heads", "head_dim"],
                   "dtype": "float32"} for n in ("k_cache", "v_cache")},
            "kv_indptr": {"shape": ["len_indptr"], "dtype": "int32"},
            "kv_indices": {"shape": ["num_kv_indices"], "dtype": "int32"},
            "kv_last_page_len": {"shape": ["batch_size"], "dtype": "int32"},
            "sm_scale": {"shape": None, "dtype": "float32"}},
    outputs={"o": {"shape": ["batch_size", "heads", "head_dim"], "dtype": "float32"},
             "lse": {"shape": ["batch_size", "heads"], "dtype": "float32"}},
    reference="import torch\n\n"
    "def run(q, k_cache, v_cache, kv_indptr, kv_indices, kv_last_page_len, sm_scale):\n"
    "    o, lse = torch.zeros_like(q), torch.full(q.shape[:2], -torch.inf)\n"
    "    for b in range(q.shape[0]):\n"
    "        pages = kv_indices[kv_indptr[b]:kv_indptr[b + 1]].long()\n"
    "        length = (len(pages) - 1) * 4 + int(kv_last_page_len[b])\n"
    "        keys = k_cache[pages].flatten(0, 1)[:length].repeat_interleave(2, 1)\n"
    "        values = v_cache[pages].flatten(0, 1)[:length].repeat_interleave(2, 1)\n"
    "        scores = torch.einsum('hd,thd->ht', q[b], keys) * sm_scale\n"
    "        lse[b] = scores.logsumexp(1)\n"
    "        o[b] = torch.einsum('ht,thd->hd', scores.softmax(1), values)\n"
    "    return o, lse\n",
)  # fmt: skip
PAGES = Workload({"batch_size": 3, "num_pages": 16, "len_indptr": 4, "num_kv_indices": 12}, {}, "w")
MATRIX = Workload({"rows": 33}, {}, "w")
CASES = {"rmsnorm": (NORM, MATRIX), "gemm": (GEMM, MATRIX), "attention": (ATTENTION, PAGES)}

ARGUMENTS = {"rmsnorm": "x, weight", "gemm": "x, w", "attention": ", ".join(ATTENTION.inputs)}
AFTER = {
    "a sign in one place": "    first(out).view(-1)[-1].neg_()\n    return out\n",
    "a row that was missed": "    first(out)[-1].zero_()\n    return out\n",
    "a row in another's place": "    first(out).copy_(first(out).roll(1, 0))\n    return out\n",
    "an output left over from the call before": (
        "    global LAST\n    LAST, out = out, LAST\n    return LAST if out is None else out\n"
    ),
    "one row left over from the call before": (
        "    global LAST\n    new = first(out).clone()\n"
        "    if LAST is not None:\n        first(out)[0] = LAST[0]\n"
        "    LAST = new\n    return out\n"
    ),
}


def code(name, after):
    right = CASES[name][0].reference.replace("def run(", "def right(")
    return (
        f"{right}\nLAST = None\n\ndef first(out):\n"
        "    return out[0] if isinstance(out, tuple) else out\n\n"
        f"def run({ARGUMENTS[name]}):\n    out = right({ARGUMENTS[name]})\n{after}"
    )


@pytest.mark.parametrize("name", CASES)
def test_the_kernel_itself_passes(zygote, name):
    evaluation = run(zygote, code(name, "    return out\n"), *CASES[name])
    assert evaluation.status == "PASSED", evaluation.log


@pytest.mark.parametrize("after", AFTER.values(), ids=AFTER)
@pytest.mark.parametrize("name", CASES)
def test_one_fault_is_caught(zygote, name, after):
    assert run(zygote, code(name, after), *CASES[name]).status == "INCORRECT_NUMERICAL"


NARROWER = {
    "a page's last row is skipped": ("[:length]", "[:max(length - 1, 1)]"),
    "the scale is left out": (" * sm_scale", ""),
    "heads are paired wrongly": ("repeat_interleave(2, 1)", "repeat(1, 2, 1)"),
    "a page's neighbour is read": ("kv_indptr[b + 1]].long()", "kv_indptr[b + 1]].long() ^ 1"),
    "the length of the last page is ignored": ("int(kv_last_page_len[b])", "4"),
}


@pytest.mark.parametrize("change", NARROWER.values(), ids=NARROWER)
def test_a_fault_inside_attention_is_caught(zygote, change):
    wrong = ATTENTION.reference.replace(*change)
    assert wrong != ATTENTION.reference
    assert run(zygote, wrong, ATTENTION, PAGES).status == "INCORRECT_NUMERICAL"
