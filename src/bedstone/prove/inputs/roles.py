"""Which values an input wants: by the constraints that speak of it, else by type, shape and name.

Random bits are no page table. A row of `ROLES` recognises an input and gives its recipe; the first
that does decides, and the last ones take everything.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bedstone.prove.inputs.recipe import (
    Bytes,
    Coins,
    Distinct,
    Fixed,
    Integers,
    Normal,
    Offsets,
    PackedRows,
    Probabilities,
    Recipe,
    Uniform,
)
from bedstone.spec import formula
from bedstone.spec.axes import extent, is_const, shape_of
from bedstone.spec.definition import Definition, TensorSpec
from bedstone.spec.element import ELEMENTS

MOST_KEPT = 64
"""The most candidates a random top-k keeps."""

_SCALE_BYTES = 4


@dataclass(frozen=True, slots=True)
class Asked:
    """One input, with all that a role may look at."""

    definition: Definition
    name: str
    spec: TensorSpec
    values: Mapping[str, int]

    @property
    def kind(self) -> str:
        """`float`, `int`, `bool` or `unknown`."""
        return ELEMENTS[self.spec.dtype].kind

    @property
    def bits(self) -> int:
        """Bits of one value."""
        return ELEMENTS[self.spec.dtype].bits

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Its sizes, None for a scalar."""
        return shape_of(self.spec, self.values)

    @property
    def rank(self) -> int:
        """How many axes; 0 for a scalar too."""
        return len(self.spec.shape or ())

    def named(self, pattern: str) -> bool:
        """Whether its name has a part that matches."""
        return re.search(rf"(^|_)({pattern})(_|$)", self.name, re.IGNORECASE) is not None

    def axis(self, *names: str) -> int | None:
        """The size of the first axis that exists among `names`."""
        return next((self.values[name] for name in names if name in self.values), None)

    def rows(self, pattern: str) -> int | None:
        """The first size of the first input whose name matches."""
        for name, spec in self.definition.inputs.items():
            if spec.shape and re.search(pattern, name, re.IGNORECASE):
                return extent(spec.shape[0], self.values)
        return None


def recipe_for(asked: Asked) -> Recipe:
    """What values an input wants."""
    for applies, recipe in ROLES:
        if applies(asked):
            return recipe(asked)
    raise AssertionError("the last role takes every input")


def offsets_total(asked: Asked) -> int | None:
    """What the last element of an input must be, where a constraint says."""
    for constraint in asked.definition.constraints:
        for one, other in _equations(constraint):
            if formula.last_element(one) == asked.name:
                try:
                    return formula.size(other, asked.values)
                except formula.UndecidableError:
                    continue
    return None


def _equations(constraint: str) -> list[tuple[str, str]]:
    pair = formula.sides(constraint)
    return [] if pair is None else [pair, pair[::-1]]


def _is_offsets(asked: Asked) -> bool:
    if asked.kind != "int" or asked.rank != 1:
        return False
    return offsets_total(asked) is not None or asked.named("indptr|cu_seqlens|cu_seqlen")


def _offsets(asked: Asked) -> Recipe:
    total = offsets_total(asked)
    if total is None:
        total = _likely_total(asked)
    is_keys = asked.named("kv|k|paged")
    queries = [n for n in asked.definition.inputs if re.match(r"(qo|q)_(indptr|cu_seqlens)$", n)]
    if is_keys and queries and asked.name not in queries:
        return Offsets(total, queries[0], _page(asked))
    return Offsets(total)


def _likely_total(asked: Asked) -> int:
    """The rows the offsets most likely divide: the first variable axis that is not a batch's."""
    own = set(asked.spec.shape or ())
    for spec in asked.definition.inputs.values():
        first = (spec.shape or ("",))[0]
        if first not in own and not is_const(asked.definition, first) and "batch" not in first:
            return asked.values.get(first, 1)
    return (asked.shape or (2,))[0] - 1


def _page(asked: Asked) -> int:
    return asked.axis("page_size", "block_size") or 1


def _pages(asked: Asked) -> int:
    found = asked.axis("num_pages", "num_blocks", "total_pages")
    return found or asked.rows("cache") or _safe_bound(asked)


def _longest(asked: Asked) -> int:
    """The most rows of one sequence."""
    pages = asked.axis("max_num_pages", "max_pages_per_seq", "max_num_blocks")
    rows = None if pages is None else pages * _page(asked)
    return rows or asked.axis("max_seq_len", "max_kv_len", "seq_len", "kv_len") or _pages(asked)


def _safe_bound(asked: Asked) -> int:
    """An index below this lies inside every tensor that has rows to be picked."""
    firsts = [
        extent(spec.shape[0], asked.values)
        for spec in asked.definition.inputs.values()
        if spec.shape and len(spec.shape) > 1 and ELEMENTS[spec.dtype].kind == "float"
    ]
    return max(1, min(firsts, default=8))


def _vocabulary(asked: Asked) -> int:
    return asked.axis("vocab_size", "vocab", "num_experts") or _safe_bound(asked)


def _fan_in(asked: Asked) -> Recipe:
    return Normal(std=(asked.shape or (1,))[-1] ** -0.5)


def _all_const(asked: Asked) -> bool:
    return all(is_const(asked.definition, entry) for entry in asked.spec.shape or ())


def _softmax_scale(asked: Asked) -> Recipe:
    width = asked.axis("head_dim", "head_dim_qk", "head_size", "head_dim_ckv", "qk_head_dim")
    return Fixed((width or 64) ** -0.5)


def _packed_rows(asked: Asked) -> Recipe:
    shape = asked.shape or (1, 1)
    return PackedRows(shape[1], shape[-1] - _SCALE_BYTES)


def _recurrent(asked: Asked) -> bool:
    return (asked.definition.op_type or "").startswith(("gdn", "kda", "gdp", "delta"))


Applies = Callable[[Asked], bool]
Gives = Callable[[Asked], Recipe]


def _float(pattern: str) -> Applies:
    return lambda a: a.kind == "float" and a.named(pattern)


def _int(pattern: str, rank: int | None = None) -> Applies:
    return lambda a: a.kind == "int" and a.named(pattern) and rank in (None, a.rank)


def _scalar(kind: str, pattern: str) -> Applies:
    return lambda a: a.spec.shape is None and a.kind == kind and a.named(pattern)


ROLES: tuple[tuple[Applies, Gives], ...] = (
    (_scalar("float", "sm_scale|softmax_scale"), _softmax_scale),
    (_scalar("float", "eps|epsilon"), lambda _: Fixed(1e-6)),
    (_scalar("float", "scale"), _softmax_scale),
    (_scalar("int", "offset"), lambda _: Fixed(0)),
    (lambda a: a.spec.shape is None and a.kind == "int", lambda _: Fixed(1)),
    (lambda a: a.kind == "bool", lambda _: Coins()),
    (_is_offsets, _offsets),
    (_int("last_page_len"), lambda a: Integers(1, _page(a) + 1)),
    (_int("block_table|block_tables|page_table|page_tables", 2), lambda a: Distinct(_pages(a))),
    (_int("seq_lens|kv_lens|cache_seqlens|kv_len_arr"), lambda a: Integers(1, _longest(a) + 1)),
    (_int("sparse_indices|topk_indices", 2),
     lambda a: Distinct(_pages(a) * _page(a), padded=True)),
    (_int("kv_indices|page_indices|indices", 1), lambda a: Distinct(_pages(a))),
    (_int("pos_ids|positions?|position_ids"),
     lambda a: Integers(0, a.axis("max_seq_len", "max_position") or a.rows("cos|sin") or 128)),
    (_int("top_k|topk"), lambda a: Integers(1, min(_vocabulary(a), MOST_KEPT) + 1)),
    (_int("topk_ids|expert_ids|experts"), lambda a: Distinct(a.axis("num_experts") or 1)),
    (lambda a: a.kind == "int" and a.bits == 8 and a.rank > 1 and a.named("fp8"), _packed_rows),
    (lambda a: a.kind == "int" and a.bits == 8, lambda a: Integers(-128, 128)
     if a.spec.dtype == "int8" else Integers(0, 256)),
    (lambda a: a.kind == "int", lambda a: Integers(0, _safe_bound(a))),
    (lambda a: a.spec.dtype.startswith("float4"), lambda _: Bytes()),
    (_float("probs|probabilities"), lambda _: Probabilities()),
    (_float("top_p|min_p|temperature"), lambda _: Uniform(0.1, 0.95)),
    (_float("scale|scales|descale|scaling"), lambda _: Uniform(0.5, 1.5)),
    (_float("A_log"), lambda _: Uniform(-1.0, 1.0)),
    (lambda a: _recurrent(a) and a.name in ("k", "q"), lambda _: Normal(unit=True)),
    (lambda a: a.rank == 1 and a.named("weight|gamma"), lambda _: Normal(1.0, 0.1)),
    (lambda a: a.rank > 1 and _all_const(a), _fan_in),
    (lambda _: True, lambda _: Normal()),
)  # fmt: skip
"""Who an input is, and what values it wants."""
