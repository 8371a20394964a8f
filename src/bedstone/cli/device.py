"""Which device runs a target, and which target a device asks for."""

from bedstone.cli.options import Device


def device_target(target: str, device: Device | None) -> str:
    """`target`, its hardware set that of the GPU where it is left open and a GPU is asked for.

    A `TargetError` where this machine has no GPU, or one that no set is for.
    """
    from bedstone.target.gpu import choose_gpu, read_gpus
    from bedstone.target.hardware import read_sets
    from bedstone.target.pin import AUTO

    hardware, *pin = target.split("/")
    if device is not Device.cuda or hardware != AUTO:
        return target
    return "/".join((choose_gpu(0, read_gpus(), read_sets().values()).name, *pin))


def hardware_device(hardware: str) -> Device:
    """The device that runs the packages of a hardware set: of one that is unknown here, the CPU."""
    from bedstone.target.hardware import read_sets

    known = read_sets().get(hardware)
    return Device.cuda if known is not None and known.vendor == "nvidia" else Device.cpu
