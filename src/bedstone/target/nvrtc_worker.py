"""Compile one CUDA source; `bedstone.target.nvrtc` runs this as a process.

It reads a request from its input, writes the cubin where that says, and exits with 3 after the
compiler's own lines where the source is at fault. It imports nothing of Bedstone.
"""

import ctypes
import json
import os
import sys
from pathlib import Path

_REFUSED = 3


def main() -> None:
    """Answer the request on the standard input."""
    request = json.load(sys.stdin)
    library = ctypes.CDLL(request["library"])
    source = Path(request["source"])
    program = ctypes.c_void_p()
    text, name = source.read_bytes(), os.fsencode(source.name)
    _require(library, library.nvrtcCreateProgram(ctypes.byref(program), text, name, 0, None, None))
    options = [os.fsencode(option) for option in request["options"]]
    given = (ctypes.c_char_p * len(options))(*options)
    status = library.nvrtcCompileProgram(program, len(options), given)
    if status:
        log = _output(library, program, "ProgramLog").rstrip(b"\0")
        sys.stdout.buffer.write(log.strip() or _reason(library, status).encode())
        raise SystemExit(_REFUSED)
    Path(request["output"]).write_bytes(_output(library, program, "CUBIN"))


def _output(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _require(library, library[f"nvrtcGet{what}Size"](program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _require(library, library[f"nvrtcGet{what}"](program, buffer))
    return buffer.raw


def _require(library: ctypes.CDLL, status: int) -> None:
    if status:
        raise SystemExit(_reason(library, status))


def _reason(library: ctypes.CDLL, status: int) -> str:
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return str(library.nvrtcGetErrorString(status).decode())


if __name__ == "__main__":
    main()
