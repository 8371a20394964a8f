"""An integer model that several sequences share, and what it answers."""

from collections.abc import Sequence
from pathlib import Path

from bedstone.runtime.load import Parts
from bedstone.spec.manifest import (
    I32,
    Batch,
    BufArg,
    Buffer,
    BufferParam,
    Call,
    Domain,
    Impl,
    KernelLaunch,
    Manifest,
    Module,
    Op,
    Program,
    ScalarParam,
    State,
    StateArg,
    StateParam,
    Var,
    VarArg,
)
from runtime_toy import compile_module

SOURCE = Path(__file__).parent / "serve" / "engine" / "served.c"
VOCAB = 97
BROKEN = VOCAB - 1
"""A token after which no logit is finite; none is ever made."""

_IN, _OUT, _SCALAR = BufferParam("in", "i32"), BufferParam("out", "i32"), ScalarParam("i32")
_PARAMS = {
    "store": (_IN, _IN, StateParam("inout"), _OUT),
    "fold": (_IN, _IN, StateParam("inout"), _SCALAR),
    "close_step": (*[StateParam("in")] * 2, *[_IN] * 3, *[_OUT] * 5, *[_SCALAR] * 4),
}
_HOST = ("token", "position", "slot")
_CHAIN = ("chain.token", "chain.at", "chain.slot")


def answers(prompt: Sequence[int], count: int, *, folded: bool = False) -> list[int]:
    """The tokens that follow a prompt; where the model `folded` as well, sums count twice."""
    history = list(prompt)
    for _ in range(count):
        history.append(sum(history) * (1 + folded) % (VOCAB - 1))
    return history[len(prompt) :]


def served_manifest(
    sha256: str,
    *,
    page: int = 4,
    width: int = 16,
    groups: int = 8,
    rows: int = 8,
    folded: bool = False,
    told: bool = True,
    emits: bool = True,
    pieces: bool = True,
    line: int = 8,
    token_bytes: int = 8,
) -> Manifest:
    """Pages of `page` tokens, `width` a sequence, `groups` sequences a step, `rows` a piece.

    `folded`: each sequence has `line` bytes, of which the first add up its tokens, too. Programs
    that are not `told` step all their groups always; a prompt's piece that does not emit hands no
    token back, and without `pieces` prompts go in token by token. The C kernels take `token_bytes`
    for 8.
    """
    context, many = page * width, "seqs" if told else groups
    made = _Programs(page, width, folded=folded)
    programs = {
        "one": Program(made.calls(1, 1, _HOST), Batch(1, 1), graph=True),
        "one.on": Program(made.calls(1, 1, _CHAIN)),
        "piece": Program(made.calls("tokens", 1, _HOST, closes=emits), Batch(1, "tokens")),
        "several": Program(made.calls(1, many, _HOST), Batch(groups, 1)),
        "several.on": Program(made.calls(1, many, _CHAIN)),
    }
    if not pieces:
        del programs["piece"], made.ops["store.tokens"]
    inputs = {
        "pages": Buffer("i32", ("seqs", width), "input", domain=_index("kv", page)),
        "position": Buffer(
            "i32", ("tokens",), "input", fill="position", domain=Domain(min=0, max=context - 1)
        ),
        "slot": Buffer("i32", ("tokens",), "input", fill="slot", domain=_index("kv", 1)),
        "token": Buffer(
            "i32", ("tokens",), "input", fill="token", domain=Domain(min=0, max=VOCAB - 1)
        ),
    }
    if folded:
        inputs["line"] = Buffer("i32", (1, "seqs"), "input", domain=_index("sums", 8))
    own = {"sums": State(bytes_per_seq=line)} if folded else {}
    return Manifest(
        model="served",
        vars={"seqs": Var(groups, "groups"), "tokens": Var(max(rows, groups), "rows")},
        states={"kv": State(bytes_per_token=token_bytes), **own},
        buffers={
            **inputs,
            **{name: Buffer("i32", (groups,), "carry") for name in _CHAIN},
            "error": Buffer("i32", (1,), "output", fill="error"),
            "next": Buffer("i32", ("seqs",), "output", fill="tokens"),
        },
        modules={"served": Module("served", sha256)},
        ops=made.ops,
        programs=programs,
    )


class _Programs:
    """Calls of programs, and the ops that they turn out to need."""

    def __init__(self, page: int, width: int, *, folded: bool) -> None:
        self.ops: dict[str, Op] = {}
        self._page, self._width, self._folded = page, width, folded

    def calls(
        self, rows: int | str, groups: int | str, names: Sequence[str], *, closes: bool = True
    ) -> tuple[Call, ...]:
        """`rows` of each of `groups` sequences go in; `closes`: a token of each comes out."""
        token, position, slot = map(BufArg, names)
        count = VarArg(rows) if isinstance(rows, str) else I32(rows)
        sums, line = ("sums", BufArg("line")) if self._folded else ("kv", position)
        every = rows if groups == 1 else groups
        found = [self._call("store", every, token, slot, StateArg("kv"), BufArg("error"))]
        if self._folded:
            found.append(self._call("fold", groups, token, line, StateArg(sums), count))
        if closes:
            outputs = map(BufArg, ("next", "error", *_CHAIN))
            sizes = (count, I32(VOCAB), I32(self._page), I32(self._width))
            states = (StateArg("kv"), StateArg(sums))
            pages = BufArg("pages")
            found.append(
                self._call("close_step", groups, *states, line, position, pages, *outputs, *sizes)
            )
        return tuple(found)

    def _call(self, entry: str, grid: int | str, *args: object) -> Call:
        name = f"{entry}.{grid}"
        launch = KernelLaunch("served", entry, (1, 1, 1), (grid, 1, 1))
        self.ops[name] = Op(_PARAMS[entry], Impl((launch,)))
        return Call(name, args)


def _index(state: str, stride: int) -> Domain:
    return Domain(index_into=state, stride=stride)


def served_parts(folder: Path, cache: Path, **shape: object) -> Parts:
    """The model's kernels, compiled into `folder`."""
    return Parts(served_manifest(compile_module(SOURCE, folder, cache), **shape), folder)
