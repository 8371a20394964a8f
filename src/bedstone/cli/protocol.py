"""A serving protocol in words."""

from collections.abc import Iterable

from bedstone.cli.table import counted
from bedstone.verify.protocol import Chain, LineTable, PageTable, Protocol, Role, Shape


def describe(protocol: Protocol) -> list[str]:
    """The protocol, a line for each thing a serving loop does."""
    return [
        _limits(protocol),
        *_aligned((role.buffer, _role(role)) for role in protocol.roles),
        *_aligned((table.buffer, _pages(table)) for table in protocol.page_tables),
        *_aligned((table.buffer, _lines(table)) for table in protocol.line_tables),
        *_aligned((name, "input staged by name") for name in protocol.staged),
        *_aligned((name, "arrives from the stage before") for name in protocol.arrives),
        *_aligned((shape.program, _shape(shape)) for shape in protocol.shapes),
        *_aligned((chain.program, _chain(chain)) for chain in protocol.chains),
        *_aligned((name, "run while weights load") for name in protocol.derive),
        *_aligned((name, "run once after loading") for name in protocol.once),
    ]


def _limits(protocol: Protocol) -> str:
    ranks = f", {protocol.ranks.max} rows of all ranks" if protocol.ranks else ""
    reach = f", {protocol.reach} tokens a sequence" if protocol.reach else ""
    rows = counted(protocol.rows.max, "row")
    return f"a call: up to {rows}, {counted(protocol.groups.max, 'sequence')}{ranks}{reach}"


def _aligned(rows: Iterable[tuple[str, str]]) -> list[str]:
    listed = list(rows)
    width = max((len(name) for name, _ in listed), default=0)
    return [f"{name:<{width}}  {text}" for name, text in listed]


def _role(role: Role) -> str:
    per = {"rows": "a row", "groups": "a sequence", "ranks": "a row of any rank"}
    count = f"{role.width} {per[role.over]}" if role.over else counted(role.entries, "value")
    return f"{role.fill}, {role.dtype}, {count}"


def _pages(table: PageTable) -> str:
    return f"page table of {table.state}, {table.pages} pages of {table.tokens} tokens a sequence"


def _lines(table: LineTable) -> str:
    wide = f" of {table.width}" if table.width > 1 else ""
    return (
        f"line table of {table.state}, {table.lines} lines{wide} a sequence, "
        f"{table.line_bytes} bytes a line"
    )


def _shape(shape: Shape) -> str:
    sequences = "1 sequence" if shape.groups == 1 else f"up to {shape.groups} sequences"
    rows = "any number of rows" if shape.rows is None else counted(shape.rows, "row")
    emits = _emits(shape.emits, shape.count) if shape.emits else "only advances state"
    context = f", context in {shape.context.name}" if shape.context else ""
    return f"{sequences} of {rows}, {emits}{context}{', captured' if shape.graph else ''}"


def _emits(role: Role, count: str | None) -> str:
    counted = f", {count} of them taken" if count else ""
    return f"hands back {role.buffer}, {role.width} a sequence{counted}"


def _chain(chain: Chain) -> str:
    after = ", ".join(chain.seeds) or "nothing"
    taken = f", {chain.count} of them taken" if chain.count else ""
    return f"runs on by itself after {after}, hands back {chain.emits.buffer}{taken}"
