"""Which compiler makes a vendor's modules: part of what decides their bytes."""

from bedstone.spec.target import Vendor
from bedstone.target.nvrtc import find_nvrtc
from bedstone.target.toolchain import find_compiler


def compiler_identity(vendor: Vendor) -> str:
    """What tells the compiler on this machine from another; none is a `TargetError`."""
    if vendor != "nvidia":
        return find_compiler().identity
    major, minor = find_nvrtc().version
    return f"nvrtc {major}.{minor}"
