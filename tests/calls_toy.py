"""Manifests of an integer model for every shape of call that the serving protocol knows.

Each reads all that the protocol fills, and its kernels check it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from bedstone.runtime.load import Parts
from bedstone.spec.frozen import Frozen
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

SOURCE = Path(__file__).parent / "runtime" / "calls.c"
VOCAB = 97
BROKEN = VOCAB - 1
"""A token after which no logit is finite; none is ever made."""
MISTOLD = 2
"""What the kernels say where a row is not what the protocol says of it."""

_IN, _OUT, _STATE = BufferParam("in", "i32"), BufferParam("out", "i32"), StateParam("inout")
_SCALAR = ScalarParam("i32")
_PARAMS = {
    "clear": (_OUT,),
    "forward": (*[_IN] * 9, *[_STATE] * 2, *[_OUT] * 5, *[_SCALAR] * 6),
    "draw": (BufferParam("in", "f32"), BufferParam("inout", "i32"), _SCALAR),
    "split": (_IN, _IN, BufferParam("inout", "i32"), _SCALAR),
    "measure": (_IN, BufferParam("inout", "i32"), *[_SCALAR] * 3),
    "onward": (*[_IN] * 2, *[_STATE] * 2, *[_IN] * 2, *[_OUT] * 5, *[_SCALAR] * 6),
}
_FILLED = ("token", "anchor", "position", "slot", "valid", "length", "bounds")
_ON = ("on.token", "on.at")


class Calls(Frozen):
    """Which calls a manifest takes.

    `steps` and `rounds` are how many sequences programs of a row, and of `rows` each, take;
    `chains` that each goes on by itself. Prompts go in by `chunk` tokens of `prompts` sequences, 0
    for no such program, and what follows comes back where it `emits`. Programs that are not `told`
    how many sequences they step always step all. Pages have `page` tokens, a sequence `width` of
    them; `folded`: a line of its own, too. `drawn`: steps of a row read a temperature.
    `ranks`: tokens go in for all ranks, of which there is one. The `context` is a var of calls, or
    of chains too.
    """

    steps: tuple[int, ...] = (1, 4)
    rounds: tuple[int, ...] = ()
    rows: int = 4
    chains: bool = False
    chunk: int = 8
    prompts: int = 1
    emits: bool = False
    told: bool = True
    page: int = 4
    width: int = 16
    folded: bool = False
    drawn: bool = False
    ranks: bool = False
    context: Literal["", "calls", "chains"] = ""

    @property
    def groups(self) -> int:
        """The most sequences of a call."""
        return max(*self.steps, *self.rounds, self.prompts, 1)

    def var(self, groups: int) -> int | str:
        """How many sequences a program steps, or the var that tells it."""
        return "seqs" if self.told and groups > 1 else groups

    @property
    def bounded(self) -> str | None:
        """The var that is told the context."""
        return "context" if self.context else None

    @property
    def most_rows(self) -> int:
        """The most rows of a call."""
        return max(self.chunk, self.groups, self.rows * max(self.rounds, default=0))


SHAPES = {
    "paged": Calls(),
    "stateful": Calls(emits=True, folded=True),
    "spec": Calls(rounds=(1, 4)),
    "stateful-spec": Calls(rounds=(1, 4), emits=True, folded=True),
    "big": Calls(page=16, width=8, rounds=(1, 4), rows=6),
    "untold": Calls(steps=(4,), rounds=(4,), told=False),
    "untold-stateful": Calls(steps=(4,), rounds=(4,), told=False, folded=True, emits=True),
    "chained": Calls(rounds=(1, 4), chains=True),
    "chained-stateful": Calls(rounds=(4,), steps=(4,), chains=True, emits=True, folded=True),
    "chained-untold": Calls(rounds=(4,), steps=(4,), chains=True, told=False),
    "rounds-alone": Calls(steps=(), rounds=(4,)),
    "rounds-alone-stateful": Calls(steps=(), rounds=(1, 4), folded=True),
    "no-chunk": Calls(chunk=0, rounds=(1, 4)),
    "no-chunk-untold": Calls(chunk=0, steps=(4,), told=False, folded=True),
    "many-prompts": Calls(prompts=4, chunk=16),
    "many-prompts-untold": Calls(prompts=4, chunk=16, told=False, emits=True, folded=True),
    "drawn": Calls(rounds=(1, 4), drawn=True),
    "drawn-by-rows": Calls(chunk=0, drawn=True),
    "one-program": Calls(steps=(), prompts=4, chunk=16, emits=True),
    "ranks": Calls(ranks=True, folded=True),
    "ranks-untold": Calls(steps=(4,), ranks=True, told=False),
    "context": Calls(rounds=(4,), context="calls", chains=True),
    "context-of-chains": Calls(rounds=(4,), context="chains", chains=True, folded=True),
    "odd-pages": Calls(page=3, width=20, rounds=(4,), rows=5),
}
"""Each shape of call, by what is special about it."""


def follows(
    prompt: Sequence[int], count: int, *, folded: bool = False, hot: bool = False
) -> list[int]:
    """The tokens that follow a prompt, `hot` where the temperature is not zero."""
    history = list(prompt)
    for _ in range(count):
        total = sum((token + 3) * (at % 7 + 1) for at, token in enumerate(history))
        likeliest = total * (5 if folded else 1) * 2654435761 >> 16
        history.append((likeliest + hot) % (VOCAB - 1))
    return history[len(prompt) :]


def calls_manifest(sha256: str, calls: Calls) -> Manifest:
    """A manifest that takes those calls."""
    made = _Programs(calls)
    programs: dict[str, Program] = {}
    for rows, widths in ((1, calls.steps), (calls.rows, calls.rounds)):
        for groups in widths:
            many = calls.var(groups)
            name = f"step.{rows}.{groups}"
            forward = made.forward(rows, many)
            if calls.drawn and rows == 1:
                forward += made.draw(many)
            programs[name] = Program(forward, Batch(groups, rows, calls.bounded), graph=True)
            if calls.chains:
                programs[f"{name}.on"] = Program(made.onward(rows, many))
    if calls.chunk:
        chunk = made.forward(None, calls.var(calls.prompts), emits=calls.emits)
        programs["chunk"] = Program(chunk, Batch(calls.prompts, "tokens", calls.bounded))
    more = {"all": Var(calls.most_rows, "ranks")} if calls.ranks else {}
    more |= {"context": Var(calls.page * calls.width)} if calls.context else {}
    own = {"sums": State(bytes_per_seq=16)} if calls.folded else {}
    return Manifest(
        model="calls",
        vars={
            "seqs": Var(calls.groups, "groups"),
            "tokens": Var(calls.most_rows, "rows"),
            **more,
        },
        states={"kv": State(bytes_per_token=8), **own},
        buffers=_buffers(calls, made.used),
        modules={"calls": Module("calls", sha256)},
        ops=made.ops,
        programs=programs,
    )


class _Programs:
    """Calls of programs, the ops they turn out to need and the buffers they use."""

    def __init__(self, calls: Calls) -> None:
        self.ops: dict[str, Op] = {}
        self.used: set[str] = set()
        self._of = calls

    def forward(
        self, rows: int | None, groups: int | str, *, emits: bool = True
    ) -> tuple[Call, ...]:
        """Tokens from the host."""
        before = [BufArg(name) for name in _FILLED]
        found = self._calls("forward", groups, before, (), rows, emits=emits)
        count = VarArg(groups) if isinstance(groups, str) else I32(groups)
        if self._of.ranks:
            self.used.add("blocks")
            buffers = map(BufArg, ("blocks", "bounds", "error"))
            found += (self._call("split", 1, *buffers, count),)
        if self._of.context:
            buffers = map(BufArg, ("length", "error"))
            found += (self._call("measure", 1, *buffers, count, VarArg("context"), I32(0)),)
        return found

    def draw(self, groups: int | str) -> tuple[Call, ...]:
        """Tokens that are drawn."""
        self.used.add("temperature")
        return (self._call("draw", groups, BufArg("temperature"), BufArg("next"), I32(VOCAB)),)

    def onward(self, rows: int, groups: int | str) -> tuple[Call, ...]:
        """Tokens from the call before."""
        calls = self._calls("onward", groups, (), [BufArg(name) for name in _ON], rows, emits=True)
        if self._of.context != "chains":
            return calls
        count = VarArg(groups) if isinstance(groups, str) else I32(groups)
        args = map(BufArg, ("on.at", "error"))
        measured = self._call("measure", 1, *args, count, VarArg("context"), I32(rows))
        # after the call that clears the error, before the one that goes on
        return calls[0], measured, *calls[1:]

    def _calls(
        self,
        entry: str,
        groups: int | str,
        before: Sequence[object],
        fed: Sequence[object],
        rows: int | None,
        *,
        emits: bool,
    ) -> tuple[Call, ...]:
        of = self._of
        states = StateArg("kv"), StateArg("sums" if of.folded else "kv")
        line = BufArg("line" if of.folded else "position" if before else "on.at")
        drafts = rows not in {None, 1}
        tokens = "several" if drafts else "next" if emits else "on.scrap"
        counts = "taken" if drafts else "on.scrap"
        outputs = map(BufArg, (tokens, counts, "error", *_ON))
        sizes = (VOCAB, of.page, of.width, int(of.folded), rows or 0, 2 if drafts else int(emits))
        tables = BufArg("pages"), line
        args = (*before, *tables, *states, *fed, *outputs, *map(I32, sizes))
        self.used |= {arg.buf for arg in args if isinstance(arg, BufArg)}
        return self._call("clear", 1, BufArg("error")), self._call(entry, groups, *args)

    def _call(self, entry: str, grid: int | str, *args: object) -> Call:
        name = f"{entry}.{grid}"
        launch = KernelLaunch("calls", entry, (1, 1, 1), (grid, 1, 1))
        self.ops[name] = Op(_PARAMS[entry], Impl((launch,)))
        return Call(name, args)


def _buffers(calls: Calls, used: set[str]) -> dict[str, Buffer]:
    last, rows = calls.page * calls.width - 1, "all" if calls.ranks else "tokens"
    seqs = "all" if calls.ranks else "seqs"
    ids = Domain(min=0, max=VOCAB - 1)
    found = {
        "anchor": Buffer("i32", ("seqs",), "input", fill="token", domain=ids),
        "blocks": Buffer("i32", (3,), "input", fill="blocks"),
        "bounds": Buffer("i32", (calls.groups + 1,), "input", fill="cu_seqlens"),
        "length": Buffer("i32", ("seqs",), "input", fill="seq_len"),
        "line": Buffer("i32", (1, seqs), "input", domain=Domain(index_into="sums", stride=16)),
        "pages": Buffer(
            "i32",
            ("seqs", calls.width),
            "input",
            domain=Domain(index_into="kv", stride=calls.page),
        ),
        "position": Buffer(
            "i32", ("tokens",), "input", fill="position", domain=Domain(min=0, max=last)
        ),
        "slot": Buffer("i32", ("tokens",), "input", fill="slot", domain=Domain(index_into="kv")),
        "temperature": Buffer("f32", ("seqs",), "input", fill="temperature"),
        "token": Buffer("i32", (rows,), "input", fill="token", domain=ids),
        "valid": Buffer("i32", ("tokens",), "input", fill="valid"),
        **{name: Buffer("i32", (calls.groups,), "carry") for name in (*_ON, "on.scrap")},
        "error": Buffer("i32", (1,), "output", fill="error"),
        "next": Buffer("i32", (seqs,), "output", fill="tokens"),
        "several": Buffer("i32", ("seqs", calls.rows), "output", fill="tokens"),
        "taken": Buffer("i32", ("seqs",), "output", fill="count"),
    }
    return {name: buffer for name, buffer in found.items() if name in used}


def calls_parts(folder: Path, cache: Path, calls: Calls) -> Parts:
    """The model's kernels, compiled into `folder`."""
    return Parts(calls_manifest(compile_module(SOURCE, folder, cache), calls), folder)
