"""An integer model with a paged state, as a manifest over the kernels of `runtime/toy.c`."""

import hashlib
from importlib.resources import files
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
from bedstone.target.toolchain import Unit, compile_unit, find_compiler

SOURCE = Path(__file__).parent / "runtime" / "toy.c"
INCLUDE = (Path(str(files("bedstone.runtime.cpu"))), SOURCE.parent)
"""Where a kernel of the tests finds how the runtime calls it."""

VOCAB, PAGE, PAGES, ROWS, PARTS = 97, 4, 10, 8, 5
CONTEXT = PAGE * PAGES

I32_IN, I32_OUT = BufferParam("in", "i32"), BufferParam("out", "i32")
I64_IN, I64_OUT = BufferParam("in", "i64"), BufferParam("out", "i64")
SCALAR = ScalarParam("i32")


def compile_module(source: Path, kernels: Path, cache: Path) -> str:
    """Compile into `kernels` under a name that means nothing; the sha256."""
    unit = Unit((source,), ("-O1",), include=INCLUDE)
    data = compile_unit(unit, cache=cache, compiler=find_compiler()).read_bytes()
    sha256 = hashlib.sha256(data).hexdigest()
    kernels.mkdir(parents=True, exist_ok=True)
    (kernels / f"x{sha256[20:26]}").write_bytes(data)
    return sha256


def launch(entry: str, grid, shared=None, **more) -> KernelLaunch:
    return KernelLaunch("toy", entry, (1, 1, 1), (grid, 1, 1), shared_mem=shared, **more)


def op(params, *launches) -> Op:
    return Op(tuple(params), Impl(launches))


def step_calls(rows, token: str, position: str, slot: str) -> tuple[Call, ...]:
    count = VarArg("tokens") if isinstance(rows, str) else I32(rows)
    chain = ("chain.token", "chain.at", "chain.slot")
    return (
        Call(f"store.{rows}", (BufArg(token), BufArg(slot), StateArg("kv"))),
        Call(
            "part",
            (StateArg("kv"), *map(BufArg, (position, "pages", "parts")), count, I32(PAGE)),
        ),
        Call(
            "close",
            (
                *map(BufArg, ("parts", position, "pages", "next", "error", *chain)),
                *(count, I32(VOCAB), I32(PAGE), I32(CONTEXT), I32(PARTS)),
            ),
        ),
    )


def toy_manifest(sha256: str, *, chain: bool = True) -> Manifest:
    inputs = ("token", "position", "slot")
    programs = {
        "decode": Program(step_calls(1, *inputs), Batch(1, 1), graph=True),
        "prefill": Program(step_calls("tokens", *inputs), Batch(1, "tokens")),
    }
    if chain:
        programs["chained"] = Program(step_calls(1, "chain.token", "chain.at", "chain.slot"))
    store = (I32_IN, I32_IN, StateParam("inout"))
    part = (StateParam("in"), I32_IN, I32_IN, I64_OUT, SCALAR, SCALAR)
    close = (I64_IN, I32_IN, I32_IN, *[I32_OUT] * 5, *[SCALAR] * 5)
    rows = ("tokens",)
    return Manifest(
        model="toy",
        vars={"seqs": Var(1, "groups"), "tokens": Var(ROWS, "rows")},
        states={"kv": State(bytes_per_token=8)},
        buffers={
            "chain.at": Buffer("i32", (1,), "carry"),
            "chain.slot": Buffer("i32", (1,), "carry"),
            "chain.token": Buffer("i32", (1,), "carry"),
            "error": Buffer("i32", (1,), "output", fill="error"),
            "next": Buffer("i32", ("seqs",), "output", fill="tokens"),
            "pages": Buffer(
                "i32", ("seqs", PAGES), "input", domain=Domain(index_into="kv", stride=PAGE)
            ),
            "parts": Buffer("i64", (PARTS,), "workspace"),
            "position": Buffer(
                "i32", rows, "input", fill="position", domain=Domain(min=0, max=CONTEXT - 1)
            ),
            "slot": Buffer("i32", rows, "input", fill="slot", domain=Domain(index_into="kv")),
            "token": Buffer(
                "i32", rows, "input", fill="token", domain=Domain(min=0, max=VOCAB - 1)
            ),
        },
        modules={"toy": Module("toy", sha256)},
        ops={
            "close": op(close, launch("close_step", 1)),
            "part": op(part, launch("part", PARTS, shared=8)),
            "store.1": op(store, launch("store", 1)),
            "store.tokens": op(store, launch("store", "tokens")),
        },
        programs=programs,
    )


def expected(prompt: list[int], count: int) -> list[int]:
    """The tokens that follow `prompt`."""
    history = list(prompt)
    for _ in range(count):
        history.append(sum(history) % VOCAB)
    return history[len(prompt) :]


def toy_parts(folder: Path, cache: Path, *, chain: bool = True) -> Parts:
    sha256 = compile_module(SOURCE, folder, cache)
    return Parts(toy_manifest(sha256, chain=chain), folder)
