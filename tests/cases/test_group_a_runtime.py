"""Reported cases about what a kernel is handed and which kernel it is; named after their ids."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from bedstone.errors import CallerError, KernelError
from bedstone.runtime.load import Parts, load
from bedstone.spec.manifest import (
    F32,
    I32,
    BufArg,
    Buffer,
    BufferParam,
    Call,
    Impl,
    KernelLaunch,
    Manifest,
    Module,
    Op,
    Program,
    ScalarParam,
    Segment,
    Var,
    VarArg,
)
from runtime_toy import compile_module

F32_IN, F32_OUT = BufferParam("in", "f32"), BufferParam("out", "f32")
N, S = ScalarParam("i32"), ScalarParam("f32")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("scalars")


@pytest.fixture(scope="module")
def digest(folder) -> str:
    return compile_module(Path(__file__).parent / "scalars.c", folder / "kernels", folder / "c")


def parts(folder, digest, entry, params, args, **extra) -> Parts:
    """One program of one call of `entry` over buffers `x` and `y`."""
    launch = KernelLaunch("scalars", entry, (1, 1, 1), (1, 1, 1))
    manifest = Manifest(
        model="scalars",
        vars={"n": Var(2**31 - 1)} if VarArg("n") in args else {},
        buffers={
            name: Buffer("f32", (16,), kind)
            for name, kind in (("x", "input"), ("y", "output"))
            if any(isinstance(arg, BufArg) and arg.buf == name for arg in args)
        }
        | extra,
        modules={"scalars": Module("scalars.so", digest)},
        ops={"op": Op(params, Impl((launch,)))},
        programs={"go": Program((Call("op", args),))},
    )
    return Parts(manifest, folder / "kernels")


def scaled(factor: float) -> tuple:
    return (BufArg("x"), BufArg("y"), F32(factor), I32(2))


SCALE = (F32_IN, F32_OUT, S, N)


def test_a01_a_kernel_file_changed_after_the_manifest_was_written(tmp_path, folder, digest):
    source = next((folder / "kernels").iterdir())
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    copy = kernels / f"scalars-{digest[:12]}.so"
    copy.write_bytes(source.read_bytes())
    made = parts(tmp_path, digest, "scale", SCALE, scaled(2.0))
    load(made, cache=folder).close()
    copy.write_bytes(source.read_bytes() + b"\0")
    actual = hashlib.sha256(copy.read_bytes()).hexdigest()
    with pytest.raises(KernelError) as refused:
        load(made, cache=folder)
    assert all(words in str(refused.value) for words in (str(copy), digest, actual))


def test_a04_a_failed_load_leaves_no_kernel_in_its_place(folder, digest):
    good = parts(folder, digest, "scale", SCALE, scaled(2.0))
    with load(good, cache=folder) as session:
        with pytest.raises(KernelError):
            load(parts(folder, "0" * 64, "scale", SCALE, scaled(3.0)), cache=folder)
        session.write("x", np.array([1], np.float32))
        session.run("go")
        assert session.read("y")[0] == 2


def test_a06_another_abi_is_refused_before_weights_are_read(folder, digest):
    weight = Buffer("f32", (1,), "weight", bind=(Segment("w"),))
    params = (F32_IN, F32_OUT, N, N)
    made = parts(
        folder, digest, "scale", params, (BufArg("w"), BufArg("y"), I32(1), I32(1)), w=weight
    )
    with pytest.raises(KernelError) as refused:
        load(made, cache=folder, checkpoint=folder / "no-checkpoint-is-here")
    assert "out buffer<f32>, f32, i32" in str(refused.value)
    assert "out buffer<f32>, i32, i32" in str(refused.value)


@pytest.mark.parametrize("factor", [2.0, float(np.float64(2.0)), 1.5])
def test_a10_a_scalar_arrives_in_its_own_width(folder, digest, factor):
    with load(parts(folder, digest, "scale", SCALE, scaled(factor)), cache=folder) as session:
        session.write("x", np.array([1, 2], np.float32))
        session.run("go")
        assert session.read("y")[:2].tolist() == [factor, 2 * factor]


def test_a11_a_plain_number_is_an_integer_where_one_is_declared(folder, digest):
    args = (BufArg("y"), VarArg("n"), I32(5), F32(float(np.float32(1e-5))))
    with load(parts(folder, digest, "echo", (F32_OUT, N, N, S), args), cache=folder) as session:
        session.run("go", n=3)
        assert session.read("y")[:3].tolist() == [3, 5, float(np.float32(1e-5))]
        for wrong in (2**31, 0, True, 3.0, "3"):
            with pytest.raises(CallerError, match="`n`"):
                session.run("go", n=wrong)


def test_a12_a_pointer_inside_a_buffer_need_not_be_aligned(folder, digest):
    args = (BufArg("x", 4), BufArg("y"), I32(8))
    with load(parts(folder, digest, "add", (F32_IN, F32_OUT, N), args), cache=folder) as session:
        session.write("x", np.arange(9, dtype=np.float32))
        session.run("go")
        assert session.read("y")[0] == 36
