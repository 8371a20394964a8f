"""Code for another GPU is refused before the driver sees any of it."""

import pytest

from bedstone.errors import KernelError, TargetError
from bedstone.runtime.cuda.fit import judge, remedy
from bedstone.runtime.cuda.modules import Modules
from bedstone.runtime.lower import Kernel
from cubins import cubin
from cuda_fake import Driver, Facts, Function
from gpu_kernels import artifact

SETS = (("ada", "sm_89"), ("hopper", "sm_90a"), ("blackwell", "sm_100a"))


def ptx(target: str, isa: str = "8.0") -> bytes:
    return f".version {isa}\n.target {target}\n.visible .entry f()\n".encode()


def gpu(capability: tuple[int, int], code: dict[bytes, object]) -> Driver:
    return Driver(code, Facts("Other", capability, (13, 0), tensor_maps=True))


@pytest.mark.parametrize(
    ("data", "capability", "fits"),
    [
        (cubin(0x6005A04, 8), (9, 0), True),
        (cubin(0x6005A04, 8, b"-arch sm_90a "), (9, 0), True),
        (cubin(0x6005A04, 8), (9, 1), True),
        (cubin(0x6005A04, 8, b"-arch sm_90a "), (9, 1), False),
        (cubin(0x6005A04, 8), (10, 0), False),
        (cubin(0x6006402, 8, b"-arch sm_100f "), (10, 3), True),
        (cubin(0x6006402, 8, b"-arch sm_100f "), (10, 1), False),
        (ptx("sm_80"), (8, 9), True),
        (ptx("sm_90"), (8, 9), False),
        (ptx("sm_90a"), (10, 0), False),
    ],
)
def test_code_is_judged_by_what_its_own_bytes_state(data, capability, fits):
    fit = judge(artifact("m", data), capability, (9, 0))
    assert (bool(fit.images), len(fit.refused)) == (fits, not fits)


@pytest.mark.parametrize("data", [cubin(0x6005A04, 8, b"-arch sm_90a "), ptx("sm_90a")])
def test_code_for_another_gpu_is_refused_with_the_fix_and_never_loaded(data):
    driver = gpu((8, 9), {data: {"f": Function((), None)}})
    with pytest.raises(TargetError) as refused:
        Modules(driver).function(artifact("m", data), Kernel("m", "f", ()))
    message = str(refused.value)
    assert "kernel `f` of module `m`" in message
    assert "`sm_90a` runs only on 9.0; the device is 8.9" in message
    assert "compile the package again with `--target ada`" in message
    assert driver.images == []


def test_a_module_that_does_not_fit_is_known_without_loading_any():
    old, new = cubin(0x5A, 7), ptx("sm_80", "99.0")
    driver = gpu((8, 9), {})
    modules = Modules(driver)
    assert "cubin for `sm_90` needs 9.0 or a later 9.x" in modules.misfit(artifact("m", old))
    assert "install a newer driver" in modules.misfit(artifact("m", new))
    assert modules.misfit(artifact("m", ptx("sm_80"))) is None
    with pytest.raises(KernelError, match="holds no device code"):
        modules.misfit(artifact("m", b"text"))
    assert driver.images == []


def test_the_fix_names_the_sets_that_run_there_or_says_that_none_does():
    assert remedy((9, 0), SETS) == "compile the package again with `--target hopper`"
    assert remedy((12, 0), SETS).startswith("no hardware set has code for this GPU")
