"""The buffers a serving loop fills and reads, and what chains one step to the next."""

from collections.abc import Mapping
from dataclasses import dataclass

from bedstone.build.operand import Role
from bedstone.build.sampler import ASKED, SETTINGS, most_edits, sampler_buffers
from bedstone.spec.manifest import Buffer, Dim, Domain, State

PAGE = 32
"""Tokens of a page. The attention kernels walk positions in tiles that divide it."""

ROWS_VAR = "tokens"
GROUPS_VAR = "seqs"
LENGTH_VAR = "length"

HOST_ROLES: dict[Role, str] = {
    "token": "token",
    "position": "position",
    "slot": "slot",
    "pages": "pages",
    "line": "line",
    "next": "next",
    "error": "error",
    "chain.token": "chain.token",
    "chain.position": "chain.position",
    "chain.slot": "chain.slot",
    "run": "run",
    **{role: role for role in (*SETTINGS, *SETTINGS.values(), *ASKED)},
}
CHAIN_ROLES: dict[Role, str] = HOST_ROLES | {
    "token": "chain.token",
    "position": "chain.position",
    "slot": "chain.slot",
    **SETTINGS,
}


@dataclass(frozen=True, slots=True)
class Served:
    """What a serving loop must know of a model: `groups` are the most sequences of a call.

    Tokens are the likeliest, or `sampled` as each sequence's settings say.
    """

    vocab: int
    context: int
    groups: int
    sampled: bool = False

    @property
    def pages_width(self) -> int:
        """Pages of the longest sequence."""
        return -(-self.context // PAGE)

    @property
    def positions(self) -> int:
        """Positions of as many pages: what a chain, which stops for no context, can reach."""
        return self.pages_width * PAGE

    @property
    def edits(self) -> int:
        """Tokens whose logits a step may change for a sequence, where it is sampled."""
        return most_edits(self.vocab, self.context) if self.sampled else 0


def protocol_buffers(served: Served, states: Mapping[str, State]) -> dict[str, Buffer]:
    """The buffers by name; states that belong to a sequence bring a table of its lines."""
    ids = Domain(min=0, max=served.vocab - 1)
    reach = Domain(min=0, max=served.context - 1)
    rows: tuple[Dim, ...] = (ROWS_VAR,)
    groups: tuple[Dim, ...] = (GROUPS_VAR,)
    chained: tuple[Dim, ...] = (served.groups,)
    paged = [name for name, state in states.items() if state.bytes_per_token]
    slots = Domain(index_into=min(paged))
    pages = Domain(index_into=min(paged), stride=PAGE)
    return {
        "token": Buffer("i32", rows, "input", fill="token", domain=ids),
        "position": Buffer("i32", rows, "input", fill="position", domain=reach),
        "slot": Buffer("i32", rows, "input", fill="slot", domain=slots),
        "pages": Buffer("i32", (GROUPS_VAR, served.pages_width), "input", domain=pages),
        **_lines(states),
        "next": Buffer("i32", groups, "output", fill="tokens"),
        "logits": Buffer("f32", (GROUPS_VAR, served.vocab), "output"),
        "error": Buffer("i32", (1,), "output", fill="error"),
        "run": Buffer("i32", (served.positions,), "output"),
        "chain.token": Buffer("i32", chained, "carry"),
        "chain.position": Buffer("i32", chained, "carry"),
        "chain.slot": Buffer("i32", chained, "carry"),
        **_sampler(served),
    }


def _sampler(served: Served) -> dict[str, Buffer]:
    if not served.sampled:
        return {}
    return sampler_buffers(GROUPS_VAR, served.groups, served.vocab, served.edits)


def _lines(states: Mapping[str, State]) -> dict[str, Buffer]:
    """A sequence has one line in each of its states: the same number in all."""
    own = sorted(name for name, state in states.items() if state.bytes_per_seq)
    if not own:
        return {}
    domain = Domain(index_into=own[0], stride=states[own[0]].bytes_per_seq)
    return {"line": Buffer("i32", (1, GROUPS_VAR), "input", domain=domain)}
