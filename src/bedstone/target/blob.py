"""A compiled module as its own bytes describe it: form, architecture, entries, needs.

What a record declares is held against this, never trusted in its place.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bedstone.errors import KernelError
from bedstone.spec.package import ModuleFact
from bedstone.target.architecture import Form
from bedstone.target.cubin import cubin_arch, cubin_parameters, spelled_sizes
from bedstone.target.elf import CUDA_MACHINE, MAGIC, Elf, parse_elf, text_at
from bedstone.target.features import needs_of
from bedstone.target.ptx import parse_ptx

ABI_PREFIX = "bs_abi_"

_CUDA_ENTRY = 0x10
_FUNCTION = 2


@dataclass(frozen=True, slots=True)
class Blob:
    """One compiled module.

    `arch` is verbatim the one it was compiled for, `sha256` that of its bytes in hex. `entries`
    maps each kernel to the parameters it states, types in a shared object and bytes in a cubin, or
    to None where it states none.
    `needs` are the CPU features it was compiled for.
    """

    module: str
    form: Form
    arch: str
    sha256: str
    entries: Mapping[str, str | None]
    needs: frozenset[str] = frozenset()

    @property
    def fact(self) -> ModuleFact:
        """What a package records of it."""
        return ModuleFact(self.form, self.arch, self.sha256)


def read_blob(module: str, data: bytes, arch: str) -> Blob:
    """What the bytes of a module compiled for `arch` are.

    A `KernelError` where they are no module, or were compiled for another architecture.
    """
    sha256 = hashlib.sha256(data).hexdigest()
    if data.startswith(MAGIC):
        elf = parse_elf(data, module)
        if elf.machine == CUDA_MACHINE:
            _require_arch(module, cubin_arch(data, module), arch)
            return Blob(module, "cubin", arch, sha256, _cuda_entries(module, data, elf))
        return Blob(module, "shared_object", arch, sha256, _stated(elf), needs_of(elf))
    ptx = parse_ptx(data, module)
    if ptx.target != arch:
        raise KernelError(f"module `{module}` is PTX for `{ptx.target}`, expected `{arch}`")
    return Blob(module, "ptx", arch, sha256, dict.fromkeys(ptx.entries))


def kernel_set_hash(blobs: Iterable[Blob]) -> str:
    """The sha256, in hex, of a set of modules: their names, forms, architectures and bytes."""
    lines = sorted(f"{b.module}\0{b.form}\0{b.arch}\0{b.sha256}\n" for b in blobs)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _stated(elf: Elf) -> dict[str, str | None]:
    """The parameter list beside each entry, of entries that are there themselves."""
    functions = {symbol.name for symbol in elf.symbols if symbol.type == _FUNCTION}
    stated = {
        symbol.name.removeprefix(ABI_PREFIX): text_at(symbol.data)
        for symbol in elf.symbols
        if symbol.name.startswith(ABI_PREFIX)
    }
    return {name: text for name, text in sorted(stated.items()) if name in functions}


def _cuda_entries(module: str, data: bytes, elf: Elf) -> dict[str, str | None]:
    named = (s.name for s in elf.symbols if s.type == _FUNCTION and s.other & _CUDA_ENTRY)
    sizes = cubin_parameters(data, module)
    return {name: spelled_sizes(sizes[name]) if name in sizes else None for name in sorted(named)}


def _require_arch(module: str, stated: str, wanted: str) -> None:
    """Where the code states no suffix, whether it is of an `a` or `f` kind is not known."""
    if stated not in {wanted, wanted.rstrip("af")}:
        raise KernelError(f"module `{module}` is machine code for {stated}, expected `{wanted}`")
