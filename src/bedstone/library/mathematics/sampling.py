"""What entries compute that draw a step's tokens and close it with them."""

from collections.abc import Mapping

from bedstone.library.mathematics.family import Family

_SETTINGS = ("temperature", "top_k", "top_p", "min_p", "seed")
_TABLES = {"page": 8, "pages_width": 5}

_DRAW = """
last = position[len(position) - len(logits):]
drawn = []
for row, logit in enumerate(logits):
    drawn.append(-1)
    if bool(logit.isfinite().all()):
        drawn[row] = drawn_of(logit, logit, temperature[row], top_k[row], top_p[row], min_p[row],
                              seed[row], last[row] + 1)
drawn = torch.tensor(drawn, device=logits.device)
"""

_DRAW_CHANGED = """
last = position[len(position) - len(logits):]
scores, logprob, top_token, top_logprob = (
    x.clone() for x in (scores, logprob, top_token, top_logprob))
drawn = []
for row, logit in enumerate(logits):
    drawn.append(-1)
    if not bool(logit.isfinite().all()):
        continue
    given = logit
    if edits[row] > 0 or restricted[row]:
        count = min(int(edits[row]), $most_edits)
        given = changed(logit, edit_token[row][:count], edit_scale[row], edit_add[row],
                        allowed[row] if restricted[row] else None)
        scores[row] = given
    drawn[row] = drawn_of(given, logit, temperature[row], top_k[row], top_p[row], min_p[row],
                          seed[row], last[row] + 1)
    if report[row] >= 0:
        told = logit - logit.amax() - torch.log(torch.exp(logit - logit.amax()).sum())
        count = min(int(report[row]), $most, $vocab)
        logprob[row] = told[drawn[row]]
        top_token[row][:count] = in_rank(logit)[:count]
        top_logprob[row][:count] = told[in_rank(logit)[:count]]
drawn = torch.tensor(drawn, device=logits.device)
to_temperature, to_top_k, to_top_p, to_min_p, to_seed = temperature, top_k, top_p, min_p, seed
"""

_RESULTS = "drawn scores logprob top_token top_logprob " + " ".join(f"to_{n}" for n in _SETTINGS)
_OVER = ("scores", "logprob", "top_token", "top_logprob")


def _sample(rows: str, *, carried: bool) -> Family:
    """A draw of `rows` sequences: all rows are one, or each its own."""
    position = f"consecutive(rows, {'1' if rows == '1' else 'rows'}, 100)"
    shapes = {"logits": f"{rows} vocab", "position": "rows", "drawn": rows}
    shapes |= dict.fromkeys(_SETTINGS, rows)
    makes = {"logits": f"with_faults(with_equals({rows}, $vocab))", "position": position}
    makes |= _settings(rows)
    sizes: dict[str, int | float] = {"rows": 3, "vocab": 5000}
    if carried:
        return Family("sampling", shapes, _DRAW, "drawn", sizes=sizes, makes=makes)
    shapes |= dict.fromkeys(("edit_token", "edit_scale", "edit_add"), f"{rows} most_edits")
    shapes |= dict.fromkeys(("edits", "restricted", "report", "logprob"), rows)
    shapes |= {"allowed": f"{rows} (vocab+31)//32", "scores": f"{rows} vocab"}
    shapes |= {"top_token": f"{rows} most", "top_logprob": f"{rows} most"}
    shapes |= {f"to_{name}": rows for name in _SETTINGS}
    makes |= _changes(rows)
    sizes |= {"most_edits": 6, "most": 5}
    return Family("sampling", shapes, _DRAW_CHANGED, _RESULTS, sizes, makes, over=_OVER)


def _settings(rows: str) -> dict[str, str]:
    return {
        "temperature": _one_of(rows, "0.0, 0.5, 1.0, 2.0"),
        "top_k": _one_of(rows, "0, -1, 1, 7, 300", "torch.int32"),
        "top_p": _one_of(rows, "0.0, 0.3, 0.9, 1.0"),
        "min_p": _one_of(rows, "0.0, 0.0, 0.05, 1.0"),
        "seed": f"torch.randint(-2**62, 2**62, ({rows},))",
    }


def _changes(rows: str) -> dict[str, str]:
    # numbers by which edited logits are exact, so that equals stay equals
    edits = f"({rows}, $most_edits)"
    return {
        "edits": f"torch.randint(0, $most_edits + 2, ({rows},), dtype=torch.int32)",
        "edit_token": f"torch.randint(-1, $vocab + 1, {edits}, dtype=torch.int32)",
        "edit_scale": f"torch.tensor([0.5, 1.0, 2.0])[torch.randint(0, 3, {edits})]",
        "edit_add": f"torch.randint(-20, 20, {edits}) / 4",
        "restricted": f"torch.randint(0, 2, ({rows},), dtype=torch.int32)",
        "allowed": f"torch.randint(-2**31, 2**31, ({rows}, ($vocab + 31) // 32)).int()",
        "report": f"torch.randint(-1, $most + 2, ({rows},), dtype=torch.int32)",
    }


def _one_of(rows: str, values: str, dtype: str = "torch.float32") -> str:
    count = values.count(",") + 1
    return f"torch.tensor([{values}], dtype={dtype})[torch.randint(0, {count}, ({rows},))]"


SAMPLING: Mapping[str, Family] = {
    "sample": _sample("1", carried=False),
    "sample_rows": _sample("rows", carried=False),
    "sample_carried": _sample("1", carried=True),
    "sample_carried_rows": _sample("rows", carried=True),
    "finish": Family(
        "sampling",
        {"drawn": "1", "position": "rows", "pages": "pages_width", "next": "1", "error": "1",
         "token": "1", "at": "1", "to_slot": "1", "run": "pages_width*page"},
        "good = int(drawn[0]) >= 0\n"
        "found = int(drawn[0]) if good else 0\n"
        "place, slot, inside = after(int(position[-1]), good, pages, $page)\n"
        "next, error, token, at, to_slot = (\n"
        "    torch.tensor([one], device=pages.device)\n"
        "    for one in (found, not good, found, place, slot))\n"
        "run = run.clone()\n"
        "if good and inside:\n"
        "    run[place] = found",
        "next error token at to_slot run",
        sizes={"rows": 3} | _TABLES,
        makes={"drawn": "torch.randint(-1, 4, (1,), dtype=torch.int32)",
               "position": "consecutive(rows, 1, $pages_width * $page)",
               "pages": "torch.randperm($pages_width).int()"},
        over=("run",),
    ),
    "finish_rows": Family(
        "sampling",
        {"drawn": "rows", "position": "rows", "pages": "rows pages_width", "next": "rows",
         "error": "1", "token": "rows", "at": "rows", "to_slot": "rows"},
        "good = bool((drawn >= 0).all())\n"
        "next = drawn * good\n"
        "places = [after(at, good, own, $page) for at, own in zip(position.tolist(), pages)]\n"
        "error, token = torch.tensor([not good], device=pages.device), next\n"
        "at, to_slot = torch.tensor([place[:2] for place in places], device=pages.device).T",
        "next error token at to_slot",
        sizes={"rows": 3} | _TABLES,
        makes={"drawn": "torch.randint(-1, 100, (rows,), dtype=torch.int32)",
               "position": "torch.randint(0, $pages_width * $page, (rows,), dtype=torch.int32)",
               "pages": "torch.randperm(rows * $pages_width).int().reshape(rows, -1)"},
    ),
}  # fmt: skip
