"""Which PTX text a driver takes. Pure.

PTX is text for the driver to compile; it names the version of the instruction set it is written in,
and a driver older than that refuses it with words that name neither the kernel nor the way out.
"""

from bedstone.target.ptx import Isa, Ptx

_NEWEST: tuple[tuple[tuple[int, int], Isa], ...] = (
    ((11, 0), (7, 0)), ((11, 1), (7, 1)), ((11, 2), (7, 2)), ((11, 3), (7, 3)),
    ((11, 4), (7, 4)), ((11, 5), (7, 5)), ((11, 6), (7, 6)), ((11, 7), (7, 7)),
    ((11, 8), (7, 8)), ((12, 0), (8, 0)), ((12, 1), (8, 1)), ((12, 2), (8, 2)),
    ((12, 3), (8, 3)), ((12, 4), (8, 4)), ((12, 5), (8, 5)), ((12, 7), (8, 6)),
    ((12, 8), (8, 7)), ((12, 9), (8, 8)), ((13, 0), (9, 0)), ((13, 1), (9, 1)),
)  # fmt: skip
"""The CUDA version of a driver, and the newest PTX it takes (PTX ISA manual, release notes)."""


def newest_isa(driver: tuple[int, int]) -> Isa:
    """The newest PTX that a driver of that CUDA version is known to take."""
    return max((isa for cuda, isa in _NEWEST if cuda <= driver), default=(0, 0))


def too_new(text: Ptx, limit: Isa) -> str | None:
    """Why a driver that takes PTX up to `limit` refuses the text, and the ways out; else None."""
    if text.isa <= limit:
        return None
    return (
        f"ptx for `{text.target}` needs PTX ISA {_dotted(text.isa)}, this driver takes up to "
        f"{_dotted(limit)}: install a newer driver, or compile the kernel again to a cubin or to "
        "an older ISA"
    )


def _dotted(isa: Isa) -> str:
    return f"{isa[0]}.{isa[1]}"
