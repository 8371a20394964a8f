"""Where each tensor of a checkpoint lies, and its bytes through one read-only map a file.

No tensor is copied: `Maps.raw` hands out views of the mapped file. What a view means is said by the
tensor's format; `bedstone.checkpoint.dequant` turns rows into float32 where a caller wants numbers.
"""

import mmap
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bedstone.checkpoint.regular import open_regular
from bedstone.errors import WeightError
from bedstone.spec.dtype import FormatName
from bedstone.spec.frozen import Frozen


class TensorInfo(Frozen):
    """One tensor by its own name in the file; `shape` is outermost first, [n, k] for a matrix.

    `offset` counts bytes from the start of the file at `path`; the reader that made this checked
    that `nbytes` from there lie inside the file and are what `format` and `shape` take.
    """

    name: str
    format: FormatName
    shape: tuple[int, ...]
    path: Path
    offset: int
    nbytes: int


class WeightFile(Frozen):
    """The checked header of one file.

    `foreign` holds the tensors whose element type is not read here, name to type name: a model that
    needs one is refused, others may stay. Bytes before `data_start` are the header.
    """

    path: Path
    tensors: Mapping[str, TensorInfo]
    foreign: Mapping[str, str]
    data_start: int
    size: int

    @property
    def names(self) -> Iterable[str]:
        """Every tensor of the file, readable or not."""
        return [*self.tensors, *self.foreign]


def read_map(path: Path) -> mmap.mmap:
    """Map a whole file for reading.

    Raises `WeightError` where the file cannot be opened or holds nothing.
    """
    try:
        with open_regular(path) as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise WeightError(f"`{path}` cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise WeightError(f"`{path}` is empty: expected a weight file") from error


class Maps:
    """One read-only map for each file a tensor was asked of."""

    def __init__(self) -> None:
        self._maps: dict[Path, NDArray[np.uint8]] = {}

    def raw(self, info: TensorInfo) -> NDArray[np.uint8]:
        """The tensor's bytes [nbytes], a view that cannot be written.

        Raises `WeightError` where the file became shorter after its header was read.
        """
        whole = self._maps.get(info.path)
        if whole is None:
            whole = np.frombuffer(read_map(info.path), np.uint8)
            self._maps[info.path] = whole
        if info.offset + info.nbytes > whole.size:
            raise WeightError(
                f"`{info.path}` has {whole.size} bytes, tensor `{info.name}` ends at byte "
                f"{info.offset + info.nbytes}: the file changed after it was opened"
            )
        return whole[info.offset : info.offset + info.nbytes]

    def close(self) -> None:
        """Let the maps go; a file stays mapped until the last view of it is gone."""
        self._maps.clear()
