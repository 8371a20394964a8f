"""`docs/kernels.md` lists every entry of the CPU catalog, and no other."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from bedstone.library.catalog import cpu_kernels
from bedstone.library.coding import INT8
from bedstone.spec.dtype import FORMATS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "kernels.md"


def named(page: str) -> Iterator[str]:
    """The names in the first column of the tables of entries."""
    entries = page.split("\n## Entries\n")[1].split("\n## ", maxsplit=1)[0]
    for row in re.findall(r"^\| (`.*?`) \| ", entries, re.MULTILINE):
        yield from re.findall(r"`(.*?)`", row.replace(r"\|", "|"))


def expanded(name: str) -> Iterator[str]:
    """The entries that a name with brackets and a format stands for."""
    pieces = re.split(r"\[(.*?)\]", name)
    choices = [["", *piece.split("|")] if at % 2 else [piece] for at, piece in enumerate(pieces)]
    for chosen in map("".join, itertools.product(*choices)):
        if "<fmt>" not in chosen:
            yield chosen
            continue
        for fmt in FORMATS.values():
            if "panels_" in chosen and fmt.block != INT8.block:
                continue
            met = {"_q": INT8.formats, "_r": INT8.rounds}.get(chosen.partition("_<fmt>")[0][-2:])
            if met is None or fmt.name in met:
                yield chosen.replace("<fmt>", fmt.name)


def test_the_page_lists_each_entry_once() -> None:
    listed = [entry for name in named(PAGE.read_text()) for entry in expanded(name)]
    assert set(listed) == set(cpu_kernels().kernels)
    assert len(listed) == len(set(listed))


def test_brackets_stand_for_what_may_be_left_out() -> None:
    assert list(expanded("norm[_q|_fq]")) == ["norm", "norm_q", "norm_fq"]
    assert "glu_q_q4_0_fq" in expanded("glu[_q]_<fmt>[_q|_fq]")
    assert "glu_q_f16" not in expanded("glu[_q]_<fmt>[_q|_fq]")
    assert list(expanded("linear_r_<fmt>")) == ["linear_r_bf16"]
