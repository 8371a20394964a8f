"""PTX text against the driver's newest version of it."""

import pytest

from bedstone.errors import TargetError
from bedstone.runtime.cuda.modules import Modules
from bedstone.runtime.cuda.ptx import newest_isa, too_new
from bedstone.runtime.lower import Kernel
from bedstone.target.ptx import Ptx
from cuda_fake import Driver, Function
from gpu_kernels import artifact

TEXT = b"//\n.version 8.4\n.target sm_86\n.address_size 64\n"


def test_a09_text_newer_than_the_driver_is_refused_before_it_sees_it():
    driver = Driver({TEXT: {"f": Function((), None)}})
    modules = Modules(driver, newest=(7, 8))
    with pytest.raises(TargetError) as caught:
        modules.function(artifact("m", TEXT), Kernel("m", "f", ()))
    message = str(caught.value)
    assert "kernel `f` of module `m`" in message
    assert "needs PTX ISA 8.4, this driver takes up to 7.8" in message
    assert "install a newer driver, or compile the kernel again to a cubin" in message
    assert not driver.images
    assert Modules(driver, newest=(8, 4)).function(artifact("m", TEXT), Kernel("m", "f", ()))
    assert driver.images == [TEXT]


@pytest.mark.parametrize(
    ("needed", "limit", "runs"),
    [
        ("8.4", (8, 4), True),
        ("8.10", (8, 4), False),
        ("8.4", (8, 10), True),
        ("10.0", (9, 9), False),
    ],
)
def test_versions_are_compared_as_numbers(needed, limit, runs):
    refusal = too_new(Ptx(tuple(map(int, needed.split("."))), "sm_90", ()), limit)
    assert (refusal is None) == runs
    assert runs or f"needs PTX ISA {needed}" in refusal


@pytest.mark.parametrize(
    ("driver", "isa"),
    [((10, 2), (0, 0)), ((11, 8), (7, 8)), ((12, 6), (8, 5)), ((13, 0), (9, 0)), ((99, 0), (9, 1))],
)
def test_the_newest_text_a_driver_takes(driver, isa):
    assert newest_isa(driver) == isa
