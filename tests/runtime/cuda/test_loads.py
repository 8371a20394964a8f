"""What a package brings to the CUDA device when it is loaded, and what is refused."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bedstone.checkpoint.tensors import TensorInfo
from bedstone.errors import CallerError, CapacityError, KernelError, TargetError
from bedstone.runtime.cuda import bindings
from bedstone.runtime.cuda.device import CudaDevice
from bedstone.runtime.cuda.driver import CudaError, Facts
from bedstone.runtime.load import Parts, load
from bedstone.spec.manifest import (
    I32,
    BufArg,
    Buffer,
    BufferParam,
    BytesParam,
    Call,
    ExternLaunch,
    GemmAlgo,
    HostTensor,
    Impl,
    KernelLaunch,
    Manifest,
    Op,
    Pack,
    PackField,
    PositionShard,
    Program,
    ScalarParam,
    Segment,
    State,
    TensorMap,
    Topology,
    Var,
    VarArg,
)
from cubins import cubin
from cuda_fake import Function, number, words
from cuda_toy import MODULE, toy_code, toy_cuda_parts
from runtime_toy import toy_manifest


def test_memory_that_is_not_there_is_a_matter_of_capacity(driver, tmp_path):
    driver.capacity = 1000
    with pytest.raises(
        CapacityError, match=r"are not to be had: [0-9]+ bytes of device memory are left"
    ):
        load(toy_cuda_parts(tmp_path), device="cuda")
    assert driver.closed
    assert driver.leaks() == set()


def test_states_too_large_are_a_matter_of_capacity(driver, tmp_path):
    driver.capacity = 100_000
    with pytest.raises(CapacityError, match="bytes of states are not to be had"):
        load(toy_cuda_parts(tmp_path), device="cuda", tokens=20_000)
    assert driver.leaks() == set()


def test_a_package_for_another_gpu_says_so(driver, tmp_path):
    driver.code = {}
    with pytest.raises(TargetError, match=r"none of its code is for GPU `Fake` .* 9\.0"):
        load(toy_cuda_parts(tmp_path), device="cuda")
    assert driver.leaks() == set()


@pytest.mark.parametrize(
    ("number", "kind", "listed"),
    [(80, CallerError, ()), (90, TargetError, ("`sm_90` needs 9.0", "the device is 8.9"))],
)
def test_a15_every_mismatch_of_gpu_and_ranks_is_in_one_message(
    driver, tmp_path, number, kind, listed
):
    driver.facts = Facts("Ada", (8, 9), (13, 0), tensor_maps=False)
    code = cubin(number << 8, 8)
    (tmp_path / "toy.cubin").write_bytes(code)
    manifest = toy_manifest(hashlib.sha256(code).hexdigest())
    states = {"kv": replace(manifest.states["kv"], shard=PositionShard("world"))}
    topology = Topology({"world": 4})
    spread = Parts(replace(manifest, topology=topology, states=states), tmp_path)
    with pytest.raises(kind) as refused:
        load(spread, device="cuda", ranks={"world": (0, 1)})
    message = str(refused.value)
    assert "topology group `world`: manifest declares 4 members, rank given for 1" in message
    assert all(text in message for text in listed)
    assert ("sm_" in message) == bool(listed)
    assert (code in driver.images, driver.live) == (False, {})
    assert driver.closed


def test_a_kernel_of_another_abi_shows_both_layouts(driver, tmp_path):
    code = toy_code()
    code["part"].sizes = (8, 8, 8, 8, 4, 8)
    driver.code = {MODULE: code}
    with pytest.raises(
        KernelError,
        match=r"op `part` launch #0: .* passes \[8, 8, 8, 8, 4, 4\] bytes, the kernel takes "
        r"\[8, 8, 8, 8, 4, 8\] bytes",
    ):
        load(toy_cuda_parts(tmp_path), device="cuda")


def test_a_state_of_another_engine_is_refused(driver, tmp_path):
    states = {"kv": State(host=HostTensor("i64", (0,), (1,)))}
    with pytest.raises(CallerError, match="state `kv` belongs to an outer engine"):
        load(toy_cuda_parts(tmp_path, states=states), device="cuda")
    assert not driver.live


def test_without_the_bindings_the_device_says_what_to_install(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(bindings, "import_module", missing)
    with pytest.raises(TargetError, match=r"`cuda-bindings`: install it with .*bedstone\[cuda\]"):
        bindings.open_driver(0)


class Blas:
    """Products that are only written down."""

    def __init__(self, stream, workspace):
        self.stream, self.workspace, self.checked, self.closed = stream, workspace, [], False
        self.given = []

    def enqueuer(self, product, algo):
        def enqueue(words):
            self.given.append((product.entry, algo, words.tolist()[3:]))
            return 0

        return enqueue

    def check(self, _product, algo, sizes, _site):
        if algo.id == 9:
            raise KernelError("the pinned algorithm 9 does not run")
        self.checked.append([(size.m, size.n, size.k) for size in sizes])

    def close(self):
        self.closed = True


def product_parts(algo=None, *, wide=8):
    params = (
        *[BufferParam("in", "bf16")] * 2,
        BufferParam("out", "bf16"),
        *[ScalarParam("i32")] * 3,
    )
    launch = ExternLaunch("extern:cublaslt_bf16_tn", algo=algo)
    args = (*map(BufArg, "awc"), VarArg("n"), I32(4), I32(8))
    return Parts(
        Manifest(
            "m",
            {
                "a": Buffer("bf16", ("n", 8), "input"),
                "w": Buffer("bf16", (4, wide), "input"),
                "c": Buffer("bf16", ("n", 4), "output"),
            },
            {},
            {"f": Op(params, Impl((launch,)))},
            {"p": Program((Call("f", args),))},
            vars={"n": Var(3)},
        )
    )


@pytest.fixture
def blas(monkeypatch):
    made = []

    def making(opened):
        def blas(*args):
            made.append(Blas(*args))
            return made[-1]

        return CudaDevice(opened, blas)

    monkeypatch.setattr("bedstone.runtime.cuda.device.CudaDevice", making)
    return made


def test_products_are_checked_at_every_size_and_given_their_numbers(driver, blas):
    algo = GemmAlgo(1, 0, 0, 1, 0, 0, 0, 0, 0)
    with load(product_parts(algo), device="cuda") as session:
        assert blas[0].checked == [[(1, 4, 8), (2, 4, 8), (3, 4, 8)]]
        session.run("p", n=2)
        assert blas[0].given == [("extern:cublaslt_bf16_tn", algo, [2, 4, 8])]
    assert [held.closed for held in blas] == [True]
    assert driver.leaks() == set()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (product_parts(GemmAlgo(9, 0, 0, 1, 0, 0, 0, 0, 0)), "algorithm 9 does not run"),
        (product_parts(wide=7), r"program `p` call #0 .*: W takes 64 bytes .* 56 are left"),
    ],
)
def test_products_that_do_not_run_are_refused_at_load(driver, blas, parts, message):
    with pytest.raises(KernelError, match=message):
        load(parts, device="cuda")
    assert blas[0].closed
    assert driver.leaks() == set()


@pytest.mark.usefixtures("driver")
def test_a_package_without_products_needs_no_library(blas, tmp_path):
    load(toy_cuda_parts(tmp_path), device="cuda").close()
    assert blas == []


def mapped_parts(folder, offset=64, shared=100_000):
    tensor = TensorMap(0, "f32", (16, 0), (4, 4), (64,), swizzle=64)
    launch = KernelLaunch(
        "toy", "mapped", (32, 1, 1), (1, 1, 1), params=(BytesParam(128),), shared_mem=shared,
        args=(Pack(128, (PackField(0, tensor),)),),
    )  # fmt: skip
    op = Op((BufferParam("inout", "f32"),), Impl((launch,)))
    buffers = {"x": Buffer("f32", (1000,), "inout")}
    calls = (Call("f", (BufArg("x", offset),)),)
    return toy_cuda_parts(
        folder, buffers=buffers, states={}, ops={"f": op}, programs={"p": Program(calls)}, vars={}
    )


def test_a_tensor_map_is_encoded_once_over_what_is_left_of_its_buffer(driver, tmp_path):
    driver.code[MODULE]["mapped"] = mapped = Function((128,), lambda *_: None)
    with load(mapped_parts(tmp_path), device="cuda") as session:
        session.run("p")
        session.run("p")
        (tiled,) = driver.encoded
        assert tiled.dims == (16, (4000 - 64 - 64) // 64 + 1)
        assert (tiled.address - 64) % 256 == 0
        assert mapped.shared == 100_000
        assert [launch.args for launch in driver.launched] == [(bytes([1]) * 128,)] * 2


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"offset": 68}, "starts at byte 4 of 16"),
        ({"refuse": "CUDA_ERROR_INVALID_VALUE"}, r"TensorMap.* over 3936 bytes at .*INVALID_VALUE"),
        ({"facts": Facts("Old", (9, 0), (12, 0), tensor_maps=False)}, "GPU `Old` has none"),
    ],
)
def test_tensor_maps_that_cannot_be(driver, tmp_path, change, error):
    driver.code[MODULE]["mapped"] = Function((128,), None)
    driver.facts = change.get("facts", driver.facts)
    if "refuse" in change:
        driver.refuse["cuTensorMapEncodeTiled"] = change["refuse"]
    with pytest.raises(KernelError, match=error):
        load(mapped_parts(tmp_path, change.get("offset", 64)), device="cuda")
    assert driver.leaks() == set()


def test_more_shared_memory_than_the_gpu_has(driver, tmp_path, monkeypatch):
    driver.code[MODULE]["mapped"] = Function((128,), None)
    monkeypatch.setattr(driver, "allow_shared", refuse_shared)
    with pytest.raises(KernelError, match="kernel `mapped` shares 100000 bytes a block beside"):
        load(mapped_parts(tmp_path), device="cuda")


def test_shared_memory_that_is_too_much_only_with_a_kernels_own_is_asked_for(driver, tmp_path):
    driver.code[MODULE]["mapped"] = mapped = Function((128,), lambda *_: None)
    with load(mapped_parts(tmp_path, shared=46_080), device="cuda"):
        assert mapped.shared == 46_080


def refuse_shared(_function, _nbytes):
    raise CudaError("cuFuncSetAttribute", "CUDA_ERROR_INVALID_VALUE")


def weight_parts(folder):
    """A weight read on the host, one on the device, one made from a source at load."""
    scale = Op(
        (BufferParam("in", "f32"), BufferParam("out", "f32")),
        Impl((KernelLaunch("toy", "double", (1, 1, 1), (1, 1, 1)),)),
    )
    bound = (Segment("t"),)
    buffers = {
        "far": Buffer("f32", (4,), "weight", placement="host", bind=bound),
        "near": Buffer("f32", (4,), "weight", bind=bound),
        "raw": Buffer("f32", (4,), "source", bind=bound),
        "made": Buffer("f32", (4,), "carry"),
        "y": Buffer("f32", (4,), "output"),
    }
    programs = {
        "derive": Program((Call("double", (BufArg("raw"), BufArg("made"))),), derive=True),
        **{
            name: Program((Call("double", (BufArg(name), BufArg("y"))),))
            for name in ("far", "near", "made")
        },
    }
    return toy_cuda_parts(
        folder, buffers=buffers, states={}, ops={"double": scale}, programs=programs, vars={}
    )


class Checkpoint:
    """One tensor in memory."""

    def __init__(self):
        self.tensors = {"t": TensorInfo("t", "f32", (4,), Path("w"), 0, 16)}
        self.data = np.array([1, 2, 3, 4], np.float32).view(np.uint8)

    def raw(self, _info):
        return self.data

    def file(self, _info):
        return None


def doubled(args, _grid, _block):
    source, target = map(number, args)
    words(target, 4, "<f4")[:] = 2 * words(source, 4, "<f4")


def test_weights_on_the_device_on_the_host_and_derived(driver, tmp_path):
    driver.code[MODULE]["double"] = Function((8, 8), doubled)
    told = []
    options = {"checkpoint": Checkpoint(), "progress": lambda *seen: told.append(seen)}
    with load(weight_parts(tmp_path), device="cuda", **options) as session:
        held = len(driver.live)
        for name, times in (("near", 2), ("far", 2), ("made", 4)):
            session.run(name)
            assert session.read("y").tolist() == [times, 2 * times, 3 * times, 4 * times]
        assert session.region("far").view(np.float32).tolist() == [1, 2, 3, 4]
    assert [seen for seen in told if seen[0] == "weights"][-1] == ("weights", 32, 32)
    assert ("derive", 0, 1) in told
    # outputs and carried, the weights' two places, the ring of outputs and its counter
    assert held <= 6
    assert driver.leaks() == set()


def test_blocks_that_wait_for_each_other_are_refused_where_not_all_fit(driver, tmp_path):
    driver.code[MODULE]["mapped"] = Function((128,), None, at_once=0, meets=True)
    with pytest.raises(TargetError, match=r"1 blocks wait for each other, .* holds 0 of them"):
        load(mapped_parts(tmp_path), device="cuda")
    assert driver.leaks() == set()
