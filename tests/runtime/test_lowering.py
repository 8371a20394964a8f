"""Lowering and patching against a reader that walks the manifest for every launch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedstone.errors import CallerError
from bedstone.runtime.image import Linker, build_image
from bedstone.runtime.lower import lower
from bedstone.runtime.program import LoadedProgram
from bedstone.spec.codec import parse, parse_value
from bedstone.spec.expr import ExprError
from bedstone.spec.manifest import (
    I32,
    Add,
    BytesParam,
    Call,
    CeilDiv,
    Clamp,
    ExprArg,
    Impl,
    KernelLaunch,
    Manifest,
    Mul,
    Op,
    Pack,
    PackField,
    ParamArg,
    Program,
    ScalarParam,
    Var,
    VarArg,
    When,
)
from conformance_cases import ACCEPTED, accepted_text
from fuzz.generator import draw_manifest
from runtime_reference import Walk, read_capture

RANKS = {"tp": 1, "ep": 0, "dp": 0, "pp": 0}
# this project reads no positional structs
READ = [name for name in ACCEPTED if name != "20_positional"]


class Fake:
    """Addresses and handles made up from names, in order of first use."""

    def __init__(self):
        self.places, self.kernels = {}, {}

    def address(self, kind, name, part):
        return self.places.setdefault((kind, name, part), 2**40 + 2**20 * len(self.places))

    def linker(self):
        def address(pointer):
            region = pointer.region
            return self.address(region.kind, region.name, region.part) + pointer.offset

        return Linker(
            address,
            lambda kernel: self.kernels.setdefault(kernel, len(self.kernels) + 1),
            lambda _tensor, over: address(over).to_bytes(8, "little") * 16,
        )

    def by_handle(self):
        return {handle: kernel for kernel, handle in self.kernels.items()}


def assignments(manifest, rng):
    upper = {name: var.max for name, var in manifest.vars.items()}
    yield dict.fromkeys(upper, 1)
    yield upper
    for _ in range(4):
        yield {name: int(rng.integers(1, most + 1)) for name, most in upper.items()}


def compare(manifest, name, envs):
    fake = Fake()
    lowered = lower(manifest, name, RANKS)
    program = LoadedProgram(lowered, build_image(lowered, fake.linker()), manifest.vars)
    for env in envs:
        walk = Walk(manifest, env, RANKS, fake.address)
        given = {var: env[var] for var in program.reads}
        assert read_capture(program.capture(given), fake.by_handle()) == walk.launches(name)


@pytest.mark.parametrize("name", READ)
def test_every_program_of_the_accepted_manifests(name):
    manifest = parse(accepted_text(name).encode())
    for program in manifest.programs:
        compare(manifest, program, assignments(manifest, np.random.default_rng(7)))


@pytest.mark.parametrize("seed", range(40))
def test_every_program_of_random_manifests(seed):
    manifest = parse_value(draw_manifest(seed))
    for program in manifest.programs:
        compare(manifest, program, assignments(manifest, np.random.default_rng(seed)))


exprs = st.recursive(
    st.sampled_from(["a", "b"]) | st.integers(1, 40),
    lambda inner: (
        st.builds(CeilDiv, inner, st.integers(1, 9))
        | st.builds(Mul, inner, st.integers(1, 9))
        | st.builds(Add, inner, inner)
        | st.builds(Clamp, inner, st.integers(0, 9), st.integers(1, 99))
    ),
    max_leaves=4,
)
whens = st.none() | st.builds(
    When, st.sampled_from("ab"), st.none() | st.integers(1, 9), st.none() | st.integers(1, 9)
)
fields = st.lists(
    st.tuples(
        st.sampled_from([1, 2, 4, 8, 16]),
        st.sampled_from([ParamArg(0), VarArg("a"), I32(-3)]) | st.builds(ExprArg, exprs),
    ),
    max_size=5,
)


@st.composite
def manifests(draw):
    """One op of packs, scalars and conditions, called several times."""
    launches = []
    for _ in range(draw(st.integers(1, 3))):
        at, placed = 0, []
        for width, source in draw(fields):
            # a value that its field cannot hold is refused, which is tested apart
            wide = max(width, 8) if isinstance(source, ExprArg | ParamArg) else width
            placed.append(PackField(at, source, wide))
            at += wide + draw(st.integers(0, 3))
        pack = Pack(at + 1, tuple(placed))
        launches.append(
            KernelLaunch(
                "m", "k", (1, 1, 1), tuple(draw(st.tuples(exprs, exprs, exprs))),
                params=(BytesParam(pack.size), ScalarParam("i64"), ScalarParam("i32")),
                args=(pack, ParamArg(0), ParamArg(1)),
                shared_mem=draw(st.none() | exprs), when=draw(whens),
            )
        )  # fmt: skip
    op = Op((ScalarParam("i64"), ScalarParam("i32")), Impl(tuple(launches)))
    calls = [
        Call("f", (ExprArg(draw(exprs)), draw(st.sampled_from([VarArg("b"), I32(-5)]))))
        for _ in range(draw(st.integers(1, 3)))
    ]
    programs = {"p": Program(tuple(calls), graph=draw(st.booleans()))}
    return Manifest("m", {}, {}, {"f": op}, programs, vars={"a": Var(50), "b": Var(9)})


@settings(max_examples=60)
@given(manifests(), st.lists(st.tuples(st.integers(1, 50), st.integers(1, 9)), max_size=6))
def test_any_program_under_any_sequence_of_vars(manifest, values):
    compare(manifest, "p", [{"a": a, "b": b} for a, b in values])


def program_of(*exprs, graph=False, params="i32"):
    op = Op((ScalarParam(params),), Impl((KernelLaunch("m", "k", (1, 1, 1), ("a", 1, 1)),)))
    calls = tuple(Call("f", (ExprArg(expr),)) for expr in exprs)
    manifest = Manifest(
        "m", {}, {}, {"f": op}, {"p": Program(calls, graph=graph)},
        vars={"a": Var(9), "b": Var(2**40), "c": Var(3)},
    )  # fmt: skip
    lowered = lower(manifest, "p", {})
    return LoadedProgram(lowered, build_image(lowered, Fake().linker()), manifest.vars)


def test_only_vars_that_launches_read_are_asked_for():
    assert program_of("a", Add("a", 1)).reads == ("a",)
    program_of("a").capture({"a": 9, "b": 2**50, "c": 0})


def test_missing_vars_are_refused():
    with pytest.raises(CallerError, match="program `p`: var `a` not provided; it reads `a`"):
        program_of("a").capture({"b": 1})


@pytest.mark.parametrize("value", [0, 10, -1])
def test_vars_out_of_range_are_refused(value):
    with pytest.raises(CallerError, match=rf"var `a` = {value} outside declared \[1, 9\]"):
        program_of("a").capture({"a": value})


def test_vars_the_manifest_does_not_have_are_refused():
    with pytest.raises(CallerError, match="declares no var `rows`"):
        program_of("a").capture({"a": 1, "rows": 1})


def test_a_value_its_parameter_cannot_hold_is_refused():
    program = program_of("a", "b")
    program.capture({"a": 1, "b": 2**31 - 1})
    with pytest.raises(CallerError, match=r"`b` is 2147483648 .* holds 2147483647 at most"):
        program.capture({"a": 1, "b": 2**31})


def test_a_value_its_pack_field_cannot_hold_is_refused():
    pack = Pack(1, (PackField(0, VarArg("b"), 1),))
    launch = KernelLaunch("m", "k", (1, 1, 1), (1, 1, 1), params=(BytesParam(1),), args=(pack,))
    manifest = Manifest(
        "m", {}, {}, {"f": Op((), Impl((launch,)))}, {"p": Program((Call("f", ()),))},
        vars={"b": Var(300)},
    )  # fmt: skip
    lowered = lower(manifest, "p", {})
    program = LoadedProgram(lowered, build_image(lowered, Fake().linker()), manifest.vars)
    program.capture({"b": 255})
    with pytest.raises(CallerError, match=r"`b` is 256 .* holds 255 at most"):
        program.capture({"b": 256})


def test_a_refused_assignment_is_not_remembered():
    program = program_of("a", "b")
    for _ in range(2):
        with pytest.raises(CallerError):
            program.capture({"a": 1, "b": 2**31})
    assert program.capture({"a": 1, "b": 3}).words[2] == 1


def test_overflow_is_refused():
    with pytest.raises(CallerError, match=r"has no value at .*: arithmetic overflow") as caught:
        program_of("a", Mul("b", 2**40), params="i64").capture({"a": 1, "b": 2**40})
    assert isinstance(caught.value.__cause__, ExprError)


def test_a_graph_keeps_a_capture_for_each_assignment():
    program = program_of("a", graph=True)
    first = program.capture({"a": 1})
    assert program.capture({"a": 2}) is not first
    assert program.capture({"a": 1}) is first


def test_a_graph_keeps_a_bounded_number_of_captures():
    program = program_of("b", graph=True)
    captures = [program.capture({"a": 1, "b": b}) for b in range(1, 200)]
    assert len({id(capture) for capture in captures}) == 64
    assert program.capture({"a": 1, "b": 199}) is captures[-1]


def test_other_programs_rewrite_the_one_they_have():
    program = program_of("a")
    assert program.capture({"a": 1}) is program.capture({"a": 2})
