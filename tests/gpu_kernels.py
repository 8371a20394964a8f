"""Kernels for the GPU tests: CUDA C++ compiled by NVRTC for the GPU at hand."""

import hashlib
from pathlib import Path

from bedstone.runtime.load import Parts
from bedstone.runtime.modules import Artifact
from bedstone.spec.manifest import Module


def compiled(source: str, arch: str, form: str = "CUBIN") -> bytes:
    """The source as machine code, or as `PTX`."""
    from cuda.bindings import nvrtc

    program = _checked(nvrtc.nvrtcCreateProgram(source.encode(), b"test.cu", 0, [], []))
    options = [f"--gpu-architecture={arch}".encode()]
    status = nvrtc.nvrtcCompileProgram(program, len(options), options)[0]
    if status.value:
        log = b" " * _checked(nvrtc.nvrtcGetProgramLogSize(program))
        _checked(nvrtc.nvrtcGetProgramLog(program, log))
        raise AssertionError(log.decode())
    data = b" " * _checked(getattr(nvrtc, f"nvrtcGet{form}Size")(program))
    _checked(getattr(nvrtc, f"nvrtcGet{form}")(program, data))
    return data


def artifact(name: str, data: bytes) -> Artifact:
    return Artifact(name, hashlib.sha256(data).hexdigest(), Path(name), data)


def package(folder: Path, manifest, **modules: bytes) -> Parts:
    """A package of modules; `manifest` is called with the module table."""
    table = {}
    for name, data in modules.items():
        # the suffix is for the reference runtime, which looks at no other file
        (folder / f"{name}.cubin").write_bytes(data)
        table[name] = Module(name, hashlib.sha256(data).hexdigest())
    return Parts(manifest(table), folder)


def _checked(answer):
    status, *values = answer
    assert not status.value, status
    return values[0] if values else None
