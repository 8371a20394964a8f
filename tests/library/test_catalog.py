"""The catalog: its families are whole, and every kernel can be launched from what it says."""

from bedstone.library.catalog import cpu_kernels
from bedstone.library.kernel import Kernel
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
    for kernel in KERNELS.values():
        scalars = {p.name for p in kernel.params if isinstance(p.type, ScalarParam)}
        used = {extent.param for extent in kernel.grid if extent.param}
        used |= {name for name, _ in kernel.shared.per} if kernel.shared else set()
        assert used <= scalars, kernel.entry
        assert len(set(names(kernel))) == len(kernel.params), kernel.entry
        assert kernel.shared is None or kernel.shared.bytes <= SHARED_LIMIT


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
