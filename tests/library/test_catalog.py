"""The catalog: its families are whole, and every kernel can be launched from what it says."""

from bedstone.library.catalog import cpu_kernels
from bedstone.library.kernel import PARTS, Kernel
from bedstone.spec.dtype import FORMATS
from bedstone.spec.manifest import BufferParam, ScalarParam, StateParam

KERNELS = cpu_kernels().kernels
SHARED_LIMIT = 232_448


def names(kernel: Kernel) -> list[str]:
    return [param.name for param in kernel.params]


def test_every_format_has_every_product() -> None:
    for name, fmt in FORMATS.items():
        for form in ("", "_q") if fmt.quantized else ("",):
            for family in ("linear", "parts2", "parts3"):
                for suffix in ("", "_b", "_rows", "_b_rows"):
                    assert f"{family}{form}_{name}{suffix}" in KERNELS
            for suffix in ("", "_q", "_fq"):
                assert f"glu{form}_{name}{suffix}" in KERNELS
        assert f"embed_{name}" in KERNELS
        assert fmt.quantized or f"linear_q_{name}" not in KERNELS


def test_an_entry_that_is_not_there_is_none() -> None:
    assert cpu_kernels().get("linear_q5_1") is None
    assert cpu_kernels().get("add") is KERNELS["add"]


def test_grids_and_scratch_depend_on_scalar_params_only() -> None:
    launches = [(kernel, stage) for kernel in KERNELS.values() for stage in kernel.launches]
    for kernel, stage in launches:
        scalars = {p.name for p in stage.params if isinstance(p.type, ScalarParam)}
        used = {extent.param for extent in stage.grid if extent.param}
        used |= {name for name, _ in stage.shared.per} if stage.shared else set()
        assert used <= scalars, kernel.entry
        assert len({p.name for p in stage.params}) == len(stage.params), kernel.entry
        assert stage.shared is None or stage.shared.bytes <= SHARED_LIMIT


def test_stages_pass_what_the_first_of_them_leaves() -> None:
    staged = [kernel for kernel in KERNELS.values() if kernel.stages]
    assert staged
    for kernel in staged:
        first, *others = kernel.stages
        given = {param.name: param.type for param in kernel.params}
        scalars = {p.name for p in first.params if isinstance(p.type, ScalarParam)}
        assert {name for dim in kernel.parts.get(PARTS, ()) for name in dim.params} <= scalars
        for stage in kernel.stages:
            assert all(given.get(p.name, p.type) == p.type for p in stage.params)
            assert {p.name for p in stage.params} - given.keys() == {PARTS}
        assert {str(p.type) for p in first.params if p.name == PARTS} == {"out buffer<f32>"}
        passed = {str(p.type) for stage in others for p in stage.params if p.name == PARTS}
        assert passed == {"in buffer<f32>"}
        assert {p.name for stage in kernel.stages for p in stage.params} >= given.keys()


def test_kernels_of_one_module_share_source_and_defines() -> None:
    seen: dict[str, tuple[str, dict[str, str]]] = {}
    for kernel in KERNELS.values():
        made_from = (kernel.source, dict(kernel.defines))
        assert seen.setdefault(kernel.module, made_from) == made_from


def test_a_kernel_writes_something() -> None:
    for kernel in KERNELS.values():
        written = [
            p for p in kernel.params
            if isinstance(p.type, BufferParam | StateParam) and p.type.direction != "in"
        ]  # fmt: skip
        assert written, kernel.entry


def test_params_lie_in_the_order_the_entry_reads_them() -> None:
    assert names(KERNELS["parts2_q_q4_1_b_rows"]) == [
        "xq", "xs", "xz", "w0", "w1", "bias0", "bias1", "y0", "table", "slot",
        "rows", "k", "n0", "n1",
    ]  # fmt: skip
    assert KERNELS["glu_bf16_q"].abi == (
        "in buffer<f32>, in buffer<bf16>, in buffer<bf16>, "
        "out buffer<i8>, out buffer<f32>, out buffer<i32>, i32, i32, i32, i32"
    )
