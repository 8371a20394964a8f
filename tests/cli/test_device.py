"""Which device runs what: `--device` names the target it leaves open, a package names its own."""

import pytest

from bedstone.cli.device import device_target, hardware_device
from bedstone.cli.options import Device
from bedstone.errors import TargetError
from bedstone.target.gpu import Gpu
from command_line import bedstone
from smollm2 import REFERENCE


@pytest.fixture
def hopper(monkeypatch):
    monkeypatch.setattr("bedstone.target.gpu.read_gpus", lambda: (Gpu(0, (9, 0), (13, 0)),))


@pytest.mark.usefixtures("hopper")
@pytest.mark.parametrize(
    ("target", "device", "found"),
    [
        ("auto", Device.cuda, "hopper"),
        ("auto/llama/q8_0", Device.cuda, "hopper/llama/q8_0"),
        ("ada", Device.cuda, "ada"),
        ("auto", Device.cpu, "auto"),
        ("auto", None, "auto"),
        ("cpu-generic", Device.cuda, "cpu-generic"),
    ],
)
def test_an_open_target_is_the_gpus_own(target, device, found):
    assert device_target(target, device) == found


def test_a_machine_without_a_gpu_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr("bedstone.target.gpu.read_gpus", tuple)
    with pytest.raises(TargetError, match="no NVIDIA GPU, or no driver"):
        device_target("auto", Device.cuda)
    for arguments in (
        ("compile", REFERENCE, "-o", tmp_path / "p"),
        ("run", REFERENCE, "--prompt", "a"),
    ):
        ended = bedstone(*arguments, "--device", "cuda")
        assert (ended.code, ended.out) == (3, "")
        assert "this machine has no NVIDIA GPU, or no driver for it" in ended.err
    assert not (tmp_path / "p").exists()


def test_a_package_runs_where_its_set_does():
    assert hardware_device("hopper") == Device.cuda
    assert hardware_device("cpu-generic") == Device.cpu
    assert hardware_device("someone-elses") == Device.cpu
