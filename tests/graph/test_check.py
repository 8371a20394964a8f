"""The checker: a legal graph passes, and one broken field is one problem."""

import dataclasses

import pytest

from bedstone.errors import CallerError
from bedstone.graph.builder import Builder
from bedstone.graph.check import check, require
from bedstone.graph.parse import parse
from bedstone.graph.step import ArgMax, AtParam, Carried, Embed, Linear, Out, Row, Value
from graph_texts import LEGAL


def found(text: str) -> list[tuple[str, str, str]]:
    return [(p.rule, p.where, p.message) for p in check(parse(text))]


def test_a_legal_graph_has_no_problem() -> None:
    assert found(LEGAL) == []
    require(parse(LEGAL))


BROKEN = [
    # the whole graph
    ("form=chunk", "form=prefill", "form", "every", "form `prefill` is none of"),
    ("(format=q8_0", "(format=q5_k", "consts", "emb", "format `q5_k` is none of"),
    (
        "norm.w = const(format=f32, shape=(64,)",
        "norm.w = const(format=q8_0, shape=(64,)",
        "consts",
        "norm.w",
        "a vector cannot be held as `q8_0`",
    ),
    (
        "mat = const(format=q4_0",
        "mat = const(format=q4_k",
        "consts",
        "mat",
        "rows of 64 are no whole blocks of 256 (`q4_k`)",
    ),
    (
        "head.w = const(format=f32, shape=(4,))",
        "head.w = const(format=f32, shape=(4, 1, 4, 1))",
        "consts",
        "head.w",
        "shape [4, 1, 4, 1] is none of [n], [n, k] and [e, n, k]",
    ),
    (
        "prompt = carried(rows=3)",
        "prompt = carried(rows=2)",
        "carried",
        "prompt",
        "holds 2 ids but a step takes 3 rows",
    ),
    ("inv_freq=(1.0,)", "inv_freq=(inf,)", "ropes", "turn", "not finite"),
    ("attention_factor=1.5", "attention_factor=0.0", "ropes", "turn", "attention factor 0.0"),
    ("outputs=(logits, next)", "outputs=()", "outputs", "every", "has no outputs"),
    ("outputs=(logits, next)", "outputs=(nothing,)", "outputs", "nothing", "nothing makes it"),
    ("params=(n, pos)", "params=(n, pos, pos)", "params", "pos", "declared 2 times"),
    ("h = add(a=x, b=a)", "h = add(a=x, b=a)\nq = add(a=x, b=a)", "ssa", "q", "is made 2 times"),
    (
        "h = add(a=x, b=a)",
        "h = add(a=x, b=a)\nmat = add(a=x, b=a)",
        "ssa",
        "mat",
        "is made 2 times",
    ),
    (
        "next = argmax(x=logits)",
        "next = argmax(x=logits)\nz = scale(x=h, by=2.0)",
        "closing",
        "next",
        "`z` follows the arg-max",
    ),
    (
        "next = argmax(x=logits)",
        "next = argmax(x=logits)\nz = argmax(x=logits)",
        "closing",
        "every",
        "has 2 arg-max or finish ops",
    ),
    # references
    ("x=n1, w=mat", "x=ghost, w=mat", "ref", "q", "reads `ghost`, which nothing makes"),
    ("a = attention(q=r", "a = attention(q=h", "ref", "a", "reads `h`, which is made later"),
    ("ids=prompt", "ids=ghost", "ref", "x", "reads `ghost`"),
    ("k=k@1", "k=k", "version", "a", "reads `k` after `k@1` overwrote its rows"),
    (
        "one = row(x=both@1, at=fixed(row=3))",
        "both@2 = set(table=both, x=a, at=fixed(row=0))\none = row(x=both@2, at=fixed(row=3))",
        "version",
        "both@2",
        "reads `both` after `both@1`",
    ),
    # ops
    ("ids=prompt", "ids=norm.w", "embed", "x", "`norm.w` carries no ids"),
    ("table=emb)", "table=norm.w)", "embed", "x", "`norm.w` is no constant matrix"),
    ("n1 = norm(x=x, w=norm.w", "n1 = norm(x=x, w=head.w", "norm", "n1", "hold 4 values, not 64"),
    ("eps=1e-06", "eps=-1e-06", "norm", "n1", "eps -1e-06 is neither"),
    ("eps=1e-06", "eps=nan", "norm", "n1", "eps nan is neither"),
    ("eps=0.0, unit=4", "eps=0.0, unit=5", "norm", "hn", "units of 5 do not divide 64"),
    ("eps=0.0, unit=4", "eps=0.0, unit=0", "norm", "hn", "units of 0 do not divide 64"),
    ("n1 = norm(x=x", "n1 = norm(x=mat", "norm", "n1", "`mat` is no computed f32 tensor"),
    ("x=n1, w=mat", "x=n1, w=bias", "linear", "q", "`bias` is no constant matrix"),
    ("x=n1, w=mat", "x=n1, w=x", "linear", "q", "`x` is no constant matrix"),
    ("bias=bias", "bias=head.w", "linear", "q", "rows of `head.w` hold 4 values, not 64"),
    ("bias=bias", "bias=x", "linear", "q", "`x` is no constant vector"),
    ("b=bias", "b=head.w", "add", "qb", "rows of `head.w` hold 4 values, not 64"),
    ("m = mul(a=g, b=q)", "m = mul(a=g, b=bias)", "mul", "m", "`bias` is no computed f32 tensor"),
    ("h = add(a=x, b=a)", "h = add(a=x, b=kv)", "add", "h", "`x` is [3, 64] but `kv` is [3, 8]"),
    ("fn=silu", "fn=relu", "act", "g", "function `relu` is none of"),
    ("by=0.5", "by=nan", "scale", "s", "factor nan is not finite"),
    ("kind=pair", "kind=gptj", "rope", "r", "kind `gptj` is neither"),
    (
        "heads=16, head_dim=4, rot=2",
        "heads=16, head_dim=5, rot=2",
        "rope",
        "r",
        "rows of `hn` hold 64 values, not 80",
    ),
    (
        "heads=16, head_dim=4, rot=2",
        "heads=16, head_dim=4, rot=6",
        "rope",
        "r",
        "turns 6 values of a head of 4",
    ),
    (
        "heads=16, head_dim=4, rot=2",
        "heads=16, head_dim=4, rot=3",
        "rope",
        "r",
        "turns 3 values, which are no whole pairs",
    ),
    (
        "heads=16, head_dim=4, rot=2",
        "heads=16, head_dim=4, rot=4",
        "rope",
        "r",
        "`turn` has 1 frequencies for 2 pairs",
    ),
    ("rope=turn, pos=pos", "rope=ghost, pos=pos", "rope", "r", "`ghost` is no rope table"),
    ("rope=turn, pos=pos", "rope=turn, pos=ghost", "rope", "r", "`ghost` is no param"),
    ("k@1 = set(table=k,", "k@1 = set(table=kv,", "set", "k@1", "`kv` is no table"),
    ("table=k, x=kv", "table=k, x=r", "set", "k@1", "rows of `r` hold 64 values, not 8"),
    ("at=fixed(row=1)", "at=fixed(row=2)", "set", "both@1", "rows 2 to 5 lie outside 4"),
    ("at=fixed(row=1)", "at=fixed(row=-1)", "set", "both@1", "rows -1 to 2 lie outside 4"),
    ("at=fixed(row=3)", "at=fixed(row=4)", "row", "one", "rows 4 to 5 lie outside 4"),
    ("at=atparam(param=n)", "at=atparam(param=ghost)", "row", "last", "`ghost` is no param"),
    ("heads=16, groups=2", "heads=16, groups=3", "attention", "a", "16 heads do not divide over 3"),
    ("heads=16, groups=2", "heads=16, groups=4", "attention", "a", "hold 8 values, not 16"),
    ("dk=4, dv=4", "dk=8, dv=4", "attention", "a", "rows of `r` hold 64 values, not 128"),
    ("dk=4, dv=4", "dk=0, dv=4", "attention", "a", "keys 0 and values 4 wide"),
    ("k=k@1", "k=kv", "attention", "a", "`kv` is no table"),
    (
        "v = table(capacity=16",
        "v = table(capacity=12",
        "attention",
        "a",
        "room for 16 rows but `v@1` for 12",
    ),
    ("scale=0.5", "scale=inf", "attention", "a", "scale inf is not"),
    ("window=7", "window=0", "attention", "a", "window 0 lets nothing through"),
    (
        "pos=pos, heads=16, groups",
        "pos=ghost, heads=16, groups",
        "attention",
        "a",
        "`ghost` is no param",
    ),
    (
        "last = row(x=h, at=atparam(param=n))\nsum = add(a=last, b=one)",
        "sum = add(a=x, b=a)",
        "argmax",
        "next",
        "closes 3 rows, but a chunk step has 1 sequences",
    ),
]


@pytest.mark.parametrize(("old", "new", "rule", "where", "message"), BROKEN)
def test_one_broken_field_is_one_problem(
    old: str, new: str, rule: str, where: str, message: str
) -> None:
    assert LEGAL.count(old) == 1
    problems = found(LEGAL.replace(old, new))
    assert [(r, w) for r, w, _ in problems] == [(rule, where)]
    assert message in problems[0][2]


@pytest.mark.parametrize("cap", ["0.0", "-1.0", "nan", "inf"])
def test_c18_a_cap_that_is_not_positive_and_finite_is_refused(cap: str) -> None:
    for old, where in (("cap=30.0", "c"), ("softcap=5.0", "a")):
        broken = LEGAL.replace(old, f"{old.partition('=')[0]}={cap}")
        assert [(w, m) for _, w, m in found(broken)] == [
            (where, f"cap {cap} is not positive and finite")
        ]


def test_c26_heads_that_do_not_divide_over_groups_are_refused() -> None:
    text = LEGAL.replace("heads=16, groups=2", "heads=6, groups=4")
    assert [(w, m) for _, w, m in found(text)] == [("a", "6 heads do not divide over 4 groups")]


def test_a_decode_step_takes_one_row_and_a_batch_no_row_param() -> None:
    graph = parse(LEGAL)
    decode = check(dataclasses.replace(graph, form="decode", row_param=None))
    assert [(p.rule, p.message) for p in decode] == [("form", "a decode step takes one row, not 3")]
    batch = {p.rule for p in check(dataclasses.replace(graph, form="batch"))}
    assert "form" in batch


def test_a_declaration_is_found_under_its_own_name() -> None:
    graph = parse(LEGAL)
    carried = {"ids": Carried("prompt", 3)}
    problems = check(dataclasses.replace(graph, carried=carried))
    assert ("ids", "is declared under this name but calls itself `prompt`") in [
        (p.where, p.message) for p in problems
    ]


def test_values_that_disagree_with_the_ops_are_named() -> None:
    graph = parse(LEGAL)
    wrong = dict(graph.values) | {"q": Value(3, 32)}
    problems = check(dataclasses.replace(graph, values=wrong))
    assert [(p.rule, p.where) for p in problems] == [("values", "q")]
    extra = dict(graph.values) | {"ghost": Value(3, 32)}
    problems = check(dataclasses.replace(graph, values=extra))
    assert [(p.rule, p.where) for p in problems] == [("ssa", "ghost")]


def test_require_names_every_problem() -> None:
    broken = LEGAL.replace("by=0.5", "by=nan").replace("window=7", "window=0")
    with pytest.raises(CallerError) as error:
        require(parse(broken))
    lines = str(error.value).splitlines()
    assert lines == [
        "the chunk step graph of `every` is not legal:",
        "  scale: `s`: factor nan is not finite",
        "  attention: `a`: window 0 lets nothing through",
    ]


def test_the_builder_infers_shapes_and_checks() -> None:
    build = Builder("tiny", "chunk", 2, row_param="n")
    table = build.const("emb", "f32", (8, 4))
    x = build.add(Embed(build.carried("prompt"), table, Out("x")))
    assert build.value(x) == Value(2, 4)
    last = build.add(Row(x, Out("last"), AtParam(build.param("n"))))
    logits = build.add(Linear(last, table, Out("logits")))
    graph = build.build(logits, build.add(ArgMax(logits, Out("next"))))
    assert graph.params == ("n",)
    assert graph.values["next"] == Value(1, 1, "i32")
    with pytest.raises(CallerError, match="has no outputs"):
        build.build()
