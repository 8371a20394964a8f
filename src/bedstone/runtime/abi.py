"""The parameter list a CPU kernel exports, held against the launch that calls it.

Beside each entry a module exports the string `bs_abi_<entry>`: the parameter types as the manifest
spells them. Two lists that differ in a direction, a type, a size or their order are different ABIs.
"""

from bedstone.errors import KernelError
from bedstone.spec.manifest import ParamType


def abi_symbol(entry: str) -> str:
    """The name of the string that states an entry's parameters."""
    return f"bs_abi_{entry}"


def abi_string(params: tuple[ParamType, ...]) -> str:
    """The parameters as a module states them."""
    return ", ".join(str(param) for param in params)


def require_abi(module: str, entry: str, params: tuple[ParamType, ...], stated: str) -> None:
    """Accept an entry whose stated parameters are exactly the launch's.

    Raises `KernelError`: they differ; the message shows both.
    """
    expected = abi_string(params)
    if stated != expected:
        raise KernelError(
            f"kernel `{entry}` of module `{module}` has another ABI than its launch: the launch "
            f"passes `{expected}`, the kernel takes `{stated}`"
        )
