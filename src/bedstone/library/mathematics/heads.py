"""What entries over heads compute: attention wherever keys lie, products of each head, arg-max."""

from bedstone.library.mathematics.family import Family

_SLOTS = "(1+stride*(rows-1))*pages_width*page"
_PAGED = {
    "position": "rows",
    "pages": "1+stride*(rows-1) pages_width",
    "y": "rows heads*dv",
}
_SEEN = {"scale": 0.3, "window": 0, "softcap": 0.0}
_TABLES = {"page": 8, "pages_width": 5}
_PAGED_SIZES = {"rows": 5, "heads": 4, "groups": 2, "dk": 32, "dv": 32, "stride": 0} | _TABLES
_MAKES_PAGED = {
    "position": "positions(rows, $stride, $pages_width * $page)",
    "pages": "torch.randperm((1 + $stride * (rows - 1)) * $pages_width).int()"
    ".reshape(-1, $pages_width)",
}
_EACH_ROW = """
length = $pages_width * $page
rows = []
for row, at in enumerate(position.tolist()):
    own = pages[row * $stride]
    rows.append(attended(q[row], in_order(k, own, $page, length), in_order(v, own, $page, length),
                         at, $scale, $window, $softcap))
y = torch.stack(rows).flatten(1)
"""
_QUERIES = "q = q.reshape(-1, $heads, $dk)\nk = k.reshape(-1, $groups, $dk)\n"
_VALUES = "v = v.reshape(-1, $groups, $dv)"
_IN_KEYS = "v = k[..., :$dv]"
_FLAT = {"position": "consecutive(rows, 1, $length)"}
_FLAT_ROWS = """
y = torch.stack([attended(q[row], k, v, at, $scale, $window, $softcap)
                 for row, at in enumerate(position.tolist())]).flatten(1)
"""


def _units(name: str, width: str) -> str:
    """Each group's values of a row, where they lie."""
    return (
        f"{name} = torch.stack([{name}[:, g * ${name}_unit:g * ${name}_unit + {width}] "
        f"for g in range($groups)], 1)\n"
    )


HEADS: dict[str, Family] = {
    "attention": Family(
        "gqa_paged",
        {"q": "rows heads*dk", "k": f"{_SLOTS} groups*dk", "v": f"{_SLOTS} groups*dv"} | _PAGED,
        _QUERIES + _VALUES + _EACH_ROW,
        sizes=_PAGED_SIZES | _SEEN,
        makes=_MAKES_PAGED,
    ),
    "attention_gate": Family(
        "gqa_paged",
        {"q": "rows heads*dk", "k": f"{_SLOTS} groups*dk", "v": f"{_SLOTS} groups*dv",
         "gate": "rows heads*dv"} | _PAGED,
        _QUERIES + _VALUES + _EACH_ROW + "y = y * sigmoid(gate)",
        sizes=_PAGED_SIZES | _SEEN | {"gate_row": 200, "gate_unit": 50, "gate_width": 32},
        makes=_MAKES_PAGED,
    ),
    "attention_in": Family(
        "mla_paged",
        {"q": "rows heads*dk", "k": f"{_SLOTS} groups*dk"} | _PAGED,
        _QUERIES + _IN_KEYS + _EACH_ROW,
        sizes=_PAGED_SIZES | _SEEN | {"groups": 1, "dk": 48},
        makes=_MAKES_PAGED,
    ),
    "attention_in_split": Family(
        "mla_paged",
        {"q": "rows heads*own", "qt": "rows heads*(dk-own)", "k": f"{_SLOTS} groups*dk"} | _PAGED,
        "q = torch.cat((q.reshape(-1, $heads, $own), "
        "qt.reshape(-1, $heads, $dk - $own)), -1)\n"
        "k = k.reshape(-1, $groups, $dk)\n" + _IN_KEYS + _EACH_ROW,
        sizes=_PAGED_SIZES | _SEEN | {"groups": 1, "dk": 48, "own": 32},
        makes=_MAKES_PAGED,
    ),
    "attention_flat": Family(
        "gqa",
        {"q": "rows heads*dk", "k": "length k_row", "v": "length v_row", "position": "rows",
         "y": "rows heads*dv"},
        "q = q.reshape(-1, $heads, $dk)\n"
        + _units("k", "$dk") + _units("v", "$dv") + _FLAT_ROWS,
        sizes={"rows": 5, "heads": 4, "groups": 4, "dk": 24, "dv": 32, "length": 40, "k_row": 110,
               "k_unit": 26, "v_row": 130, "v_unit": 32} | _SEEN,
        makes=_FLAT,
    ),
    "attention_flat_split": Family(
        "mla_ragged",
        {"q": "rows heads*dk", "k": "length k_row", "v": "length v_row",
         "kt": "pages_width*page pitch", "position": "rows", "pages": "1 pages_width",
         "y": "rows heads*dv"},
        "q = q.reshape(-1, $heads, $dk)\n"
        + _units("k", "$own") + _units("v", "$dv")
        + "tail = in_order(kt, pages[0], $page, $length)[:, $column:$column + $dk - $own]\n"
        "k = torch.cat((k, tail[:, None].expand(-1, $groups, -1)), -1)"
        + _FLAT_ROWS,
        sizes={"rows": 5, "heads": 4, "groups": 4, "dk": 40, "dv": 32, "own": 24, "length": 40,
               "k_row": 110, "k_unit": 26, "v_row": 130, "v_unit": 32, "pitch": 30, "column": 7}
        | _SEEN | _TABLES,
        makes=_FLAT | {"pages": "torch.randperm($pages_width).int()[None]"},
    ),
    "gather": Family(
        "move",
        {"table": "pages_width*page pitch", "pages": "pages_width", "y": "rows width"},
        "y = in_order(table, pages, $page, $rows)[:, $column:$column + $width]",
        sizes={"rows": 33, "width": 64, "pitch": 80, "column": 8} | _TABLES,
        makes={"pages": "torch.randperm($pages_width).int()"},
    ),
    "hlinear": Family(
        "gemm",
        {"x": "rows heads*k", "w": "heads*n k", "y": "rows heads*n"},
        "x, w = x.reshape(-1, $heads, $k), w.reshape($heads, $n, $k)\n"
        "y = torch.einsum('rhk,hnk->rhn', x, w).flatten(1)",
        sizes={"rows": 5, "heads": 3, "k": 256, "n": 64, "x_row": 864, "x_unit": 288,
               "x_width": 256},
    ),
    "hlinear_t": Family(
        "gemm",
        {"x": "rows heads*k", "w": "heads*k n", "y": "rows heads*n"},
        "x, w = x.reshape(-1, $heads, $k), w.reshape($heads, $k, $n)\n"
        "y = torch.einsum('rhk,hkn->rhn', x, w).flatten(1)",
        sizes={"rows": 5, "heads": 3, "k": 64, "n": 256, "x_row": 216, "x_unit": 72, "x_width": 64},
    ),
    "argmax": Family(
        "sampling",
        {"logits": "1 vocab", "position": "rows", "pages": "pages_width", "next": "1",
         "error": "1", "token": "1", "at": "1", "to_slot": "1", "run": "pages_width*page"},
        "finite = bool(logits.isfinite().all())\n"
        "found = int(first_largest(logits)[0]) if finite else 0\n"
        "place, slot, inside = after(int(position[-1]), finite, pages, $page)\n"
        "next, error, token, at, to_slot = (\n"
        "    torch.tensor([one], device=pages.device)\n"
        "    for one in (found, not finite, found, place, slot))\n"
        "run = run.clone()\n"
        "if finite and inside:\n"
        "    run[place] = found",
        "next error token at to_slot run",
        sizes={"rows": 3, "vocab": 5000} | _TABLES,
        makes={"logits": "with_faults(with_equals(1, $vocab))",
               "position": "consecutive(rows, 1, $pages_width * $page)",
               "pages": "torch.randperm($pages_width).int()"},
        over=("run",),
    ),
    "argmax_rows": Family(
        "sampling",
        {"logits": "rows vocab", "position": "rows", "pages": "rows pages_width", "next": "rows",
         "error": "1", "token": "rows", "at": "rows", "to_slot": "rows"},
        "finite = bool(logits.isfinite().all())\n"
        "next = first_largest(logits) * finite\n"
        "places = [after(at, finite, own, $page) for at, own in zip(position.tolist(), pages)]\n"
        "error, token = torch.tensor([not finite], device=pages.device), next\n"
        "at, to_slot = torch.tensor([place[:2] for place in places], device=pages.device).T",
        "next error token at to_slot",
        sizes={"rows": 3, "vocab": 5000} | _TABLES,
        makes={"logits": "with_faults(with_equals(rows, $vocab))",
               "position": "torch.randint(0, $pages_width * $page, (rows,), dtype=torch.int32)",
               "pages": "torch.randperm(rows * $pages_width).int().reshape(rows, -1)"},
    ),
}  # fmt: skip
