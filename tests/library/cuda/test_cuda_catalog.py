"""The CUDA set: entries of the CPU's catalog, each launchable from what its geometry says."""

from dataclasses import replace
from fnmatch import fnmatchcase
from math import prod

import pytest

from bedstone.library.catalog import cpu_kernels, every_kernel
from bedstone.library.coding import BF16, INT8
from bedstone.library.cuda import attend, coded, dense, mixture, products, recurrent
from bedstone.library.cuda.catalog import cuda_kernels
from bedstone.library.kernel import Geometry, Join, Kernel, KernelSet
from bedstone.spec.dtype import FORMATS
from bedstone.spec.manifest import BufferParam, ScalarParam
from bedstone.target.records import KERNELS

MOST_THREADS = 1024
MOST_BLOCKS = 8
"""Of a cluster, wherever a kernel runs: more is an attribute that kern-llm 0.3.1 does not set."""
MOST_SHARED = 232_448
FAMILIES = (coded, products, dense, attend, mixture, recurrent)

sets = pytest.mark.parametrize(
    "held", [cuda_kernels("f32"), cuda_kernels("bf16")], ids=["f32", "bf16"]
)
EVERY = {kernel.entry: kernel for kernel in every_kernel(BF16)}


def base(name: str, held: KernelSet) -> Kernel:
    """The catalog's entry that a kernel of the set computes."""
    others = {n: entry for entry, rows in held.variants.items() for n, _ in rows}
    return EVERY[others.get(name, name)]


@sets
def test_a_kernel_takes_the_parameters_of_its_entry(held: KernelSet) -> None:
    assert held.kernels
    for name, kernel in held.kernels.items():
        assert kernel.params[: len(base(name, held).params)] == base(name, held).params, name


@sets
def test_every_launch_fits_a_gpu(held: KernelSet) -> None:
    for name, kernel in held.kernels.items():
        x, y, z = kernel.block
        assert 0 < x * y * z <= MOST_THREADS, name
        assert kernel.pdl, name
        scalars = {p.name for p in kernel.params if isinstance(p.type, ScalarParam)}
        used = {extent.param for extent in kernel.grid if extent.param}
        used |= {param for param, _ in kernel.shared.per} if kernel.shared else set()
        assert used <= scalars, name
        assert kernel.shared is None or kernel.shared.bytes <= MOST_SHARED, name


@sets
def test_a_cluster_is_of_no_more_blocks_than_any_runtime_launches(held: KernelSet) -> None:
    for kernel in held.every:
        assert prod(kernel.cluster or (1,)) <= MOST_BLOCKS, kernel.entry


@sets
def test_kernels_of_one_module_share_source_and_defines(held: KernelSet) -> None:
    seen: dict[str, tuple[str, dict[str, str]]] = {}
    for kernel in held.kernels.values():
        made_from = (kernel.source, dict(kernel.defines))
        assert seen.setdefault(kernel.module, made_from) == made_from


@sets
def test_every_source_is_there(held: KernelSet) -> None:
    named = {kernel.source for kernel in held.kernels.values()}
    folders = [KERNELS / "cuda-generic" / "common", KERNELS / "hopper" / "common"]
    assert named <= {path.name for folder in folders for path in folder.glob("*.cu")}


def test_tables_decide_a_define_and_a_block_of_products() -> None:
    floats, halves = cuda_kernels("f32"), cuda_kernels("bf16")
    assert (floats.cache, halves.cache) == ("f32", "bf16")
    assert floats.kernels.keys() <= halves.kernels.keys()
    touching = 0
    for name, kernel in floats.kernels.items():
        other = halves.kernels[name]
        assert "BS_CACHE" not in kernel.defines
        if other != kernel:
            touching += 1
            assert dict(other.defines) == {**kernel.defines, "BS_CACHE": "bf16"}
            assert other.module == f"{kernel.module}-bf16cache"
            same = replace(other, module=kernel.module, defines=kernel.defines)
            assert replace(same, block=kernel.block) == kernel
            if other.block != kernel.block:
                assert (other.source, other.block) == ("linear.cu", (288, 1, 1))
                assert FORMATS[other.module.split("-")[1]].quantized
    assert touching
    for name in ("set_rows", "attention", "linear_f32_rows", "rope_rows", "glu_q8_0"):
        assert floats.kernels[name] != halves.kernels[name]
    for name in ("delta", "glu_q_q8_0", "embed_q8_0", "xlinear_bf16", "hlinear_q4_k", "route_f32"):
        assert floats.kernels[name] == halves.kernels[name]


def test_a_device_without_clusters_gets_none() -> None:
    plain = cuda_kernels("bf16", clusters=False)
    assert plain.kernels.keys() == cuda_kernels("bf16").kernels.keys()
    assert all(kernel.cluster is None for kernel in plain.kernels.values())


def test_a_device_with_room_gets_larger_rings() -> None:
    small, large = (cuda_kernels("bf16", warpgroups=room) for room in (False, True))
    for held in (small, large):
        assert all(k.shared is None or k.shared.bytes <= MOST_SHARED for k in held.every)
    for name in ("attention_d128_x8", "attention_gate_q_d128_x8"):
        few, many = (held.kernels[name] for held in (small, large))
        assert few.shared.bytes < 99 * 1024 < many.shared.bytes
        assert (few.cluster, few.grid, few.source) == (many.cluster, many.grid, many.source)
        assert few.module != many.module
    few, many = (held.joins["attention_turned_n_d128_x8"].kernel for held in (small, large))
    assert few.shared.bytes < many.shared.bytes
    assert small.kernels["attention_d64_x8"] == large.kernels["attention_d64_x8"]


def test_a_kernel_for_several_launches_takes_what_they_do_not_hand_each_other() -> None:
    assert not cuda_kernels("f32").joins
    held = cuda_kernels("bf16")
    for name, join in held.joins.items():
        params = [param for one in join.taken for param in EVERY[one.entry].params]
        assert [p.name for p in params] == [own for one in join.taken for own in one.names], name
        types: dict[str, list[object]] = {}
        for param, given in zip(params, names_of(join), strict=True):
            types.setdefault(given, []).append(param.type)
        left = {given: first for given, (first, *_) in types.items()}
        for given in join.handed:
            made, *read = types[given]
            assert made.direction == "out"
            assert {each.direction for each in read} <= {"in"}, name
            del left[given]
        for given in join.settled:
            assert all(isinstance(each, ScalarParam) for each in types[given]), name
            del left[given]
        assert {p.name: p.type for p in join.kernel.params} == left, name
        assert len(join.kernel.params) == len(left)
        assert join.kernel.pdl
        assert name.startswith(join.kernel.entry)
        assert name not in held.kernels


def names_of(join: Join) -> list[str]:
    return [given for one in join.taken for given in one.names.values()]


def test_kernels_for_most_launches_come_first() -> None:
    counts = [len(join.taken) for join in cuda_kernels("bf16").joins.values()]
    assert counts == sorted(counts, reverse=True)


def test_no_row_of_a_geometry_is_idle() -> None:
    names = list(cuda_kernels("f32").kernels)
    for family in FAMILIES:
        for pattern, geometry in family.GEOMETRIES:
            assert isinstance(geometry, Geometry)
            assert any(fnmatchcase(name, pattern) for name in names), pattern
        for variant in family.VARIANTS:
            assert any(name.endswith(variant.suffix) for name in names), variant


def test_a_launch_takes_the_first_variant_that_suits() -> None:
    kernel = EVERY["add"]
    few, many = (Kernel(f"add_{n}", "m", "m.cu", {}, kernel.params, kernel.grid) for n in "ab")
    rows = (
        ("add_a", lambda sizes, cache: sizes["count"] < 8 and cache == "bf16"),
        ("add_b", lambda sizes, _: sizes["count"] < 16),
    )
    kernels = {"add": kernel, "add_a": few, "add_b": many}
    for cache, count, found in (("bf16", 4, few), ("f32", 4, many), ("bf16", 16, kernel)):
        held = KernelSet("some", kernels, cache, variants={"add": rows})
        assert held.suited("add", {"count": count}) is found
    assert KernelSet("some", kernels).suited("add", {"count": 4}) is kernel
    assert KernelSet("some", kernels).suited("mul", {"count": 4}) is None


def test_codes_are_one_buffer_of_bfloat16() -> None:
    made = EVERY["glu_q_bf16_fq"]
    assert [p.name for p in made.params] == ["xq", "wg", "wu", "y", "yq", "rows", "k", "n", "act"]
    assert made.params[0].type == BufferParam("in", "bf16")
    assert made.params[4].type == BufferParam("out", "bf16")
    assert {f"linear_q_{name}" for name in FORMATS} - EVERY.keys() == {"linear_q_f32"}
    assert cpu_kernels().kernels["quantize"].params != EVERY["quantize"].params


def test_blocks_of_codes() -> None:
    assert INT8.scaled
    assert not BF16.scaled
    assert (INT8.code_bytes, BF16.code_bytes) == (1, 2)
    assert BF16.whole(64, 8)
    assert not BF16.whole(64, 12)
    assert INT8.whole(64)
    assert not INT8.whole(48)
