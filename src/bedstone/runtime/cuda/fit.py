"""Which of a module's code a GPU runs, judged from its bytes before the driver sees any. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from bedstone.runtime.cuda.fatbin import Image, device_images
from bedstone.runtime.cuda.ptx import too_new
from bedstone.runtime.modules import Artifact
from bedstone.target.architecture import Capability, fitting, unfit
from bedstone.target.cubin import cubin_arch
from bedstone.target.ptx import Isa, parse_ptx


@dataclass(frozen=True, slots=True)
class Fit:
    """A module's code that a GPU may run, and why the rest does not."""

    images: tuple[Image, ...]
    refused: tuple[str, ...]


def judge(artifact: Artifact, capability: Capability, newest: Isa) -> Fit:
    """What of a module runs on a device whose driver takes PTX up to `newest`.

    A container is left to the driver: its header names a device without a suffix.
    Raises `KernelError`: the module holds no device code.
    """
    images = device_images(artifact.module, artifact.data)
    reasons = [_refusal(image, artifact.module, capability, newest) for image in images]
    fit = (image for image, reason in zip(images, reasons, strict=True) if reason is None)
    return Fit(tuple(fit), tuple(dict.fromkeys(filter(None, reasons))))


def remedy(capability: Capability, sets: Iterable[tuple[str, str]]) -> str:
    """What to do about code for another device, of the sets (name, arch) there are."""
    able = " or ".join(f"`--target {name}`" for name in fitting(capability, sets))
    if able:
        return f"compile the package again with {able}"
    return "no hardware set has code for this GPU: run the package on the one it was compiled for"


def _refusal(image: Image, module: str, capability: Capability, newest: Isa) -> str | None:
    match image.form:
        case "cubin":
            return unfit(cubin_arch(image.data, module), "cubin", capability)
        case "ptx":
            text = parse_ptx(image.data, module)
            return unfit(text.target, "ptx", capability) or too_new(text, newest)
        case "fatbin":
            return None
