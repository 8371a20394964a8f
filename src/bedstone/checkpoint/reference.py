"""From a reference to an open checkpoint.

A reference is a directory, a weight file, or `pkg:PACKAGE/FILE`, a file inside an installed Python
package (which is located, never imported).
"""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from bedstone.checkpoint.checkpoint import Checkpoint, Weights, require_weights
from bedstone.checkpoint.config import ModelConfig, require_config
from bedstone.checkpoint.dequant import dequantize
from bedstone.checkpoint.gguf import GgufFile, read_gguf
from bedstone.checkpoint.gguf_config import ROPE_FACTORS, parse_gguf_config
from bedstone.checkpoint.names import gguf_name
from bedstone.checkpoint.rope import divided
from bedstone.checkpoint.tensors import Maps
from bedstone.errors import CallerError

PACKAGE_PREFIX = "pkg:"


def resolve(reference: str) -> Path:
    """The directory or file that `reference` names.

    Raises:
        CallerError: It names nothing that exists, or leaves the package.
    """
    if reference.startswith(PACKAGE_PREFIX):
        return _resolve_package(reference)
    path = Path(reference).expanduser()
    if not path.exists():
        raise CallerError(f"checkpoint `{reference}` does not exist")
    return path


def open_checkpoint(reference: str) -> Checkpoint:
    """Read the headers of the checkpoint that `reference` names and check that it is whole.

    Raises:
        CallerError: The reference names no checkpoint.
    """
    path = resolve(reference)
    if path.is_dir():
        raise CallerError(f"checkpoint `{reference}` is a directory without `config.json`")
    return _open_gguf(reference, path)


def _open_gguf(reference: str, path: Path) -> Checkpoint:
    file = read_gguf(path)
    maps = Maps()
    config = _gguf_config(file, path, maps)
    weights = Weights(
        (file.weights,),
        file.weights.tensors,
        file.weights.foreign,
        gguf_name,
        inert=frozenset({ROPE_FACTORS}),
    )
    require_weights(config, weights, str(path))
    return Checkpoint(reference, path, config, weights, weights.notes, maps)


def _gguf_config(file: GgufFile, path: Path, maps: Maps) -> ModelConfig:
    names = file.weights.names
    config = parse_gguf_config(file.metadata, set(names), str(path), path.stem)
    factors = file.weights.tensors.get(ROPE_FACTORS)
    if factors is not None:
        values = dequantize(maps.raw(factors), factors.format, factors.shape).ravel().tolist()
        config = replace(config, rope=divided(config.rope, values))
    require_config(config, str(path))
    return config


def _resolve_package(reference: str) -> Path:
    package, _, file = reference.removeprefix(PACKAGE_PREFIX).partition("/")
    parts = PurePosixPath(file).parts
    if not package.isidentifier() or not parts or file.startswith("/") or "\\" in file:
        raise CallerError(f"checkpoint `{reference}`: expected `pkg:PACKAGE/FILE`")
    if ".." in parts or ":" in file:
        raise CallerError(f"checkpoint `{reference}` leaves the package `{package}`")
    found = find_spec(package)
    for folder in (found and found.submodule_search_locations) or ():
        path = Path(folder, *parts)
        if path.exists():
            return path
    fault = f"has no file `{file}`" if found else "is not installed"
    raise CallerError(f"checkpoint `{reference}`: package `{package}` {fault}")
