"""Nothing is declared in vain: every output is written, every declaration used."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bedstone.verify.facts import Facts
from bedstone.verify.rule import Each, Finding, Rows, Rule, escape
from bedstone.verify.uses import Uses


@dataclass(frozen=True, slots=True)
class Used:
    """The manifest with what it uses."""

    facts: Facts
    uses: Uses


def with_uses(facts: Facts) -> Iterator[Used]:
    """The uses, found once for all the rules."""
    yield Used(facts, Uses.of(facts.manifest))


def results_written(used: Used) -> Iterator[Finding]:
    """Some program writes each output and each carry."""
    buffers = used.facts.manifest.buffers
    for name in used.uses.unused("written", buffers):
        kind = buffers[name].kind
        if kind in {"output", "carry"}:
            yield Finding(
                f"{kind} buffer `{name}` is never written by any program",
                f"/buffers/{escape(name)}",
                (f"buffer {name}",),
            )


def buffers_used(used: Used) -> Iterator[Finding]:
    """Every buffer is an argument of a call or what a peer buffer is `of`."""
    return _never(used, "buffer", "/buffers", used.facts.manifest.buffers)


def ops_called(used: Used) -> Iterator[Finding]:
    """Every op is called."""
    return _never(used, "op", "/ops", used.facts.manifest.ops, "called")


def modules_launched(used: Used) -> Iterator[Finding]:
    """Every module has a launch."""
    return _never(used, "module", "/modules", used.facts.manifest.modules, "launched")


def states_used(used: Used) -> Iterator[Finding]:
    """Every state is an argument of a call or what a peer buffer is `of`."""
    return _never(used, "state", "/states", used.facts.manifest.states)


def vars_used(used: Used) -> Iterator[Finding]:
    """Every var sizes, bounds, conditions or feeds something."""
    return _never(used, "var", "/vars", used.facts.manifest.vars)


def groups_used(used: Used) -> Iterator[Finding]:
    """Every group is named by a peer buffer, a rank, a shard or a ranked choice of tensors."""
    return _never(used, "group", "/topology/groups", used.facts.groups)


def _never(
    used: Used, kind: str, section: str, declared: Iterable[str], verb: str = "used"
) -> Iterator[Finding]:
    for name in used.uses.unused(kind, declared):
        yield Finding(
            f"{kind} `{name}` is never {verb}",
            f"{section}/{escape(name)}",
            (f"{kind} {name}",),
        )


UNUSED_ROWS: Rows[Facts] = (
    Each(
        with_uses,
        (
            Rule("U1", "unused", results_written),
            Rule("B5", "unused", buffers_used),
            Rule("O6", "unused", ops_called),
            Rule("M7", "unused", modules_launched),
            Rule("S17", "unused", states_used),
            Rule("U2", "unused", vars_used),
            Rule("T2", "unused", groups_used),
        ),
    ),
)
