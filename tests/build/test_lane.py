"""The lane of each vendor's sets, and the manifests that a CUDA lane's schedules become."""

from dataclasses import replace

import pytest

from bedstone.build.emit import Forms, Naming, emit
from bedstone.build.lane import Lane, lane_of, target_lane
from bedstone.errors import CallerError, TargetError
from bedstone.library.coding import BF16, INT8
from bedstone.library.kernel import Extent, Kernel
from bedstone.models import step_graph
from bedstone.spec.codec import parse, serialize
from bedstone.spec.manifest import (
    BytesParam,
    CeilDiv,
    KernelLaunch,
    Manifest,
    Module,
    Mul,
    Pack,
    Segment,
    StateParam,
)
from bedstone.target.hardware import read_sets
from bedstone.verify import check
from cuda_sets import every_entry
from lane_graphs import Formats
from lane_zoo import SHALLOW
from reference_reader import AVAILABLE, reference_reader

SETS = read_sets()


@pytest.fixture(scope="module")
def reference():
    assert AVAILABLE, "the reference reader is a test dependency: pip install kern-llm==0.3.1"
    with reference_reader() as reader:
        yield reader


def manifest(name: str, lane: Lane, **facts: int) -> Manifest:
    """A family's steps of every form, for chunks of up to 48 rows and batches of 12."""
    config = replace(SHALLOW[name], **facts)
    planned = {}
    for form, rows in (("decode", 1), ("chunk", 48), ("batch", 12)):
        param = "tokens" if form == "chunk" else None
        graph = step_graph(
            config, form,
            formats=Formats("bf16"), rows=rows, capacity=config.context, row_param=param,
        )  # fmt: skip
        planned[form] = lane.lower(graph)
    forms = Forms(**planned)
    own = {n: (Segment(f"own.{n}"),) for _, made in forms.each() for n in made.consts}
    made = emit(forms, Naming("tiny", config.vocab, config.context, own), lane.kernels).manifest
    return replace(made, modules={name: Module(name, "0" * 64) for name in made.modules})


def launches(made: Manifest) -> dict[str, KernelLaunch]:
    return {launch.entry: launch for op in made.ops.values() for launch in op.impl.launches}


@pytest.mark.parametrize("numerics", ["precise", "quantized"])
@pytest.mark.parametrize("name", SHALLOW)
def test_every_family_is_accepted_here_and_by_the_reference(name, numerics, reference):
    made = manifest(name, every_entry(numerics))
    assert check(made) == []
    assert parse(serialize(made)) == made
    assert reference.ask(serialize(made)).messages == ()


def test_many_rows_go_by_codes_where_activations_are_rounded():
    rounded = manifest("qwen3", every_entry("quantized"))
    asked = launches(rounded)
    assert {"linear_q_bf16", "glu_q_bf16_q", "add_norm_q"} <= asked.keys()
    assert {"linear_bf16", "glu_bf16"} <= asked.keys(), "a step of one row reads floats"
    assert {b.dtype for n, b in rounded.buffers.items() if n.startswith("work.")} == {"bf16", "f32"}
    precise = manifest("qwen3", every_entry("precise"))
    assert not [entry for entry in launches(precise) if "_q" in entry]


def test_tables_hold_what_the_kernels_take_them_for():
    full, half = (
        manifest("qwen3.5", every_entry(numerics)).states for numerics in ("precise", "quantized")
    )
    paged = {name for name, state in full.items() if state.bytes_per_token}
    assert paged
    assert paged != full.keys()
    for name, state in full.items():
        if name in paged:
            assert half[name].bytes_per_token * 2 == state.bytes_per_token
        else:
            assert half[name] == state


def test_a_launch_has_its_kernels_geometry():
    lane = every_entry("precise")
    plain = lane.kernels.kernels["linear_bf16"]
    wide = replace(
        plain,
        block=(256, 1, 1),
        cluster=(2, 1, 1),
        pdl=True,
        grid=(Extent("n", 64, 2), Extent("rows", 8, 3), Extent(times=4)),
    )
    kernels = replace(lane.kernels, kernels={**lane.kernels.kernels, "linear_bf16": wide})
    made = manifest("qwen3", replace(lane, kernels=kernels))
    found = {
        name: op.impl.launches[0]
        for name, op in made.ops.items()
        if op.impl.launches[0].entry == "linear_bf16"
    }
    one = next(launch for name, launch in found.items() if "rows=1," in name)
    assert (one.block, one.cluster, one.pdl) == ((256, 1, 1), (2, 1, 1), True)
    assert one.grid[1:] == (3, 4)
    assert isinstance(one.grid[0], int)
    assert one.grid[0] % 2 == 0
    many = next(launch for name, launch in found.items() if "rows=tokens," in name)
    assert many.grid[1] == Mul(CeilDiv("tokens", 8), 3)
    assert check(made) == []


def test_a_variant_is_taken_by_the_most_a_launch_can_be():
    lane = every_entry("precise")
    plain = lane.kernels.kernels["norm"]
    kernels = lane.kernels.kernels | {"norm_few": replace(plain, entry="few")}
    rows = {"norm": (("norm_few", lambda sizes, _: sizes["rows"] < 12),)}
    made = manifest(
        "qwen3", replace(lane, kernels=replace(lane.kernels, kernels=kernels, variants=rows))
    )
    rows_of = {
        op.split("rows=")[1].split(",")[0]: launch.entry
        for op, launch in ((name, made.ops[name].impl.launches[0]) for name in made.ops)
        if launch.entry in {"norm", "few"}
    }
    assert rows_of == {"1": "few", "tokens": "norm", "seqs": "norm"}


def test_a_vendors_sets_have_its_lane():
    cpu, cuda = lane_of(SETS["cpu-generic"], "quantized"), lane_of(SETS["hopper"], "quantized")
    assert (cpu.kernels.coding, cpu.kernels.cache, cpu.knobs.max_chunk) == (INT8, "bf16", 512)
    assert (cuda.kernels.coding, cuda.kernels.cache, cuda.knobs.max_chunk) == (BF16, "bf16", 2048)
    for name in ("cpu-generic", "hopper"):
        assert lane_of(SETS[name], "precise").kernels.cache == "f32"
    with pytest.raises(TargetError, match="`any` holds models and no kernels"):
        lane_of(SETS["any"], "precise")


def test_a_target_needs_no_device_to_be_planned():
    assert target_lane("hopper/llama", "precise").kernels.coding == BF16
    assert target_lane("cpu-x86-64-v4", "precise").kernels.coding == INT8
    assert target_lane("auto", "precise").kernels.coding == INT8
    with pytest.raises(CallerError, match="no hardware set `hoper`"):
        target_lane("hoper", "precise")


def test_clusters_begin_with_hopper():
    def clusters(name: str) -> list[Kernel]:
        kernels = lane_of(SETS[name], "precise").kernels.kernels.values()
        return [kernel for kernel in kernels if kernel.cluster is not None]

    assert clusters("hopper")
    assert clusters("blackwell")
    assert not clusters("ada")
    assert not clusters("cuda-generic")


def test_without_fused_codes_no_launch_writes_them():
    config = SHALLOW["qwen3"]
    graph = step_graph(config, "batch", formats=Formats("bf16"), rows=12, capacity=32)
    lane = every_entry("quantized")
    apart, fused = lane.unfused.lower(graph), lane.lower(graph)
    assert len(apart.steps) > len(fused.steps)
    assert apart.coding == BF16


def test_products_of_codes_read_matrices_by_tensor_maps():
    made = manifest("qwen3", lane_of(SETS["hopper"], "quantized"))
    assert check(made) == []
    found = launches(made)["glu_q_bf16_q_batch"]
    assert found.params[-1] == BytesParam(13 * 128)
    pack = found.args[-1]
    assert isinstance(pack, Pack)
    maps = [field.source for field in pack.fields]
    k, heights = SHALLOW["qwen3"].hidden, (8, 16, 32, 64, 128)
    read = [(0, 16), (0, 32), (0, 64), *((of, height) for of in (1, 2) for height in heights)]
    assert [(m.param, m.box) for m in maps] == [(of, (64, height)) for of, height in read]
    assert {(m.dims[0], m.strides) for m in maps} == {(k, (2 * k,))}
    plain = lane_of(SETS["blackwell"], "quantized").kernels
    assert not [kernel for kernel in plain.kernels.values() if kernel.boxes]


def test_a_chunks_attention_reads_tables_by_tensor_maps() -> None:
    made = manifest("qwen3", lane_of(SETS["hopper"], "quantized"), head_dim=64)
    assert check(made) == []
    ((op, found),) = (
        (op, launch)
        for op in made.ops.values()
        for launch in op.impl.launches
        if launch.module.startswith("attention-many-wgmma-64")
    )
    assert found.params[-1] == BytesParam(2 * 128)
    pack = found.args[-1]
    assert isinstance(pack, Pack)
    maps = [field.source for field in pack.fields]
    width = SHALLOW["qwen3"].kv_heads * 64
    assert [type(op.params[m.param]) for m in maps] == [StateParam, StateParam]
    assert {(m.dims, m.box, m.strides) for m in maps} == {((width, 0), (64, 32), (2 * width,))}
