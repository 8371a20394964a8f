"""From a reference to an open checkpoint.

A reference is a directory, a weight file, or `pkg:PACKAGE/FILE`, a file inside an installed Python
package (which is located, never imported).
"""

from dataclasses import replace
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from bedstone.checkpoint.checkpoint import Checkpoint, Weights, accounted, require_weights
from bedstone.checkpoint.config import ModelConfig, require_config
from bedstone.checkpoint.dequant import dequantize
from bedstone.checkpoint.gguf import GgufFile, read_gguf
from bedstone.checkpoint.gguf_config import ROPE_FACTORS, parse_gguf_config
from bedstone.checkpoint.names import gguf_name
from bedstone.checkpoint.rope import divided
from bedstone.checkpoint.tensors import Maps
from bedstone.errors import CallerError, WeightError

PACKAGE_PREFIX = "pkg:"
CONFIG = "config.json"


def resolve(reference: str) -> Path:
    """The directory or file that `reference` names.

    Raises `CallerError` where it names nothing that exists, or leaves the package.
    """
    if reference.startswith(PACKAGE_PREFIX):
        return _resolve_package(reference)
    if not reference:
        raise CallerError(
            "checkpoint ``: expected a directory, a weight file or `pkg:PACKAGE/FILE`"
        )
    try:
        path = Path(reference).expanduser()
    except RuntimeError as error:
        raise CallerError(f"checkpoint `{reference}`: {error}") from error
    if not _exists(path, reference):
        raise CallerError(f"checkpoint `{reference}` does not exist")
    return path


def _exists(path: Path, reference: str) -> bool:
    """Whether there is a file; a `CallerError` where none can have that name or it is hidden."""
    try:
        return path.exists()
    except OSError as error:
        raise CallerError(f"checkpoint `{reference}` cannot be read: {error.strerror}") from error


def open_checkpoint(reference: str) -> Checkpoint:
    """Read the headers of the checkpoint that `reference` names and check that it is whole.

    Raises `CallerError` where the reference names no checkpoint.
    """
    path = resolve(reference)
    if path.is_dir():
        return _open_directory(reference, path)
    if path.suffix == ".safetensors":
        return _open_hf(reference, path)
    return _open_gguf(reference, path)


def require_identity(opened: Checkpoint, identity: str, package: str) -> None:
    """Accept the checkpoint that `package` was compiled from; another is a `WeightError`."""
    if opened.identity != identity:
        raise WeightError(
            f"checkpoint `{opened.reference}` is not the one {package} was compiled from: expected "
            f"identity {identity}, found {opened.identity}"
        )


def _open_directory(reference: str, path: Path) -> Checkpoint:
    if _exists(path / CONFIG, reference):
        return _open_hf(reference, path)
    files = sorted(path.glob("*.gguf"))
    if len(files) != 1:
        found = ", ".join(f"`{file.name}`" for file in files) or "none"
        raise CallerError(
            f"checkpoint `{reference}` is a directory without `{CONFIG}`: expected one `.gguf` "
            f"file in it, found {found}"
        )
    return _open_gguf(reference, files[0])


def _open_hf(reference: str, path: Path) -> Checkpoint:
    from bedstone.checkpoint.hf import open_hf  # noqa: PLC0415 - a GGUF file needs none of it

    return open_hf(reference, path)


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
    return accounted(Checkpoint(reference, path, config, weights, (), file, maps))


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
    found = _spec(package)
    for folder in (found and found.submodule_search_locations) or ():
        path = Path(folder, *parts)
        if _exists(path, reference):
            return path
    fault = f"has no file `{file}`" if found else "is not installed"
    raise CallerError(f"checkpoint `{reference}`: package `{package}` {fault}")


def _spec(package: str) -> ModuleSpec | None:
    try:
        return find_spec(package)
    except ValueError:
        # a program that runs as `__main__` is no package, though it is loaded
        return None
