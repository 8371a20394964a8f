"""From a reference to an open checkpoint.

A reference is a directory, a weight file, or `pkg:PACKAGE/FILE`, a file inside an installed Python
package (which is located, never imported).
"""

from dataclasses import replace
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from bedstone.checkpoint.checkpoint import Checkpoint, Weights, require_weights
from bedstone.checkpoint.config import ModelConfig, require_config
from bedstone.checkpoint.dequant import dequantize
from bedstone.checkpoint.gguf import GgufFile, read_gguf
from bedstone.checkpoint.gguf_config import ROPE_FACTORS, parse_gguf_config
from bedstone.checkpoint.hf_config import parse_hf_config, quant_method
from bedstone.checkpoint.hf_wrapped import own_names, text_fields
from bedstone.checkpoint.json_text import read_object
from bedstone.checkpoint.layers import EXPERTS
from bedstone.checkpoint.names import HEAD, gguf_name
from bedstone.checkpoint.rope import divided
from bedstone.checkpoint.shards import Shards, read_lone, read_shards
from bedstone.checkpoint.tensors import Maps
from bedstone.errors import CallerError, WeightError

PACKAGE_PREFIX = "pkg:"
CONFIG, GENERATION = "config.json", "generation_config.json"

SHOWN_UNUSED = 3
"""A note names that many tensors nothing reads and counts the rest."""


def resolve(reference: str) -> Path:
    """The directory or file that `reference` names.

    Raises `CallerError` where it names nothing that exists, or leaves the package.
    """
    if reference.startswith(PACKAGE_PREFIX):
        return _resolve_package(reference)
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
        return _open_hf(reference, path, path.parent, read_lone(path))
    return _open_gguf(reference, path)


def _open_directory(reference: str, path: Path) -> Checkpoint:
    if (path / CONFIG).exists():
        return _open_hf(reference, path, path, read_shards(path))
    files = sorted(path.glob("*.gguf"))
    if len(files) != 1:
        found = ", ".join(f"`{file.name}`" for file in files) or "none"
        raise CallerError(
            f"checkpoint `{reference}` is a directory without `{CONFIG}`: expected one `.gguf` "
            f"file in it, found {found}"
        )
    return _open_gguf(reference, files[0])


def _open_hf(reference: str, path: Path, folder: Path, shards: Shards) -> Checkpoint:
    where = str(folder / CONFIG)
    values = text_fields(read_object(folder / CONFIG), where)
    stops = folder / GENERATION
    generation = read_object(stops) if stops.exists() else {}
    method = quant_method(values, where)
    if method not in (None, "fp8"):
        raise _unsupported_method(where, method)
    config = parse_hf_config(values, where, folder.resolve().name, generation)
    config, notes = _settled_tie(_with_layout(config, shards), shards)
    require_config(config, where)
    names = own_names({*shards.tensors, *shards.foreign})
    weights = Weights(shards.files, shards.tensors, shards.foreign, names)
    require_weights(config, weights, str(path))
    if method is not None:
        # Only now: a tensor whose scale is missing is the better message.
        raise _unsupported_method(where, method)
    notes = (*shards.notes, *notes)
    return _accounted(Checkpoint(reference, path, config, weights, notes, folder))


def _unsupported_method(where: str, method: str | None) -> WeightError:
    return WeightError(
        f"field `quantization_config` of `{where}` has quant_method `{method}`, which is not "
        "supported"
    )


def _settled_tie(config: ModelConfig, shards: Shards) -> tuple[ModelConfig, tuple[str, ...]]:
    """A tied config over a file with its own output matrix: the matrix serves.

    Where the two are equal nothing changes, where they differ the config is wrong.
    """
    names = {*shards.tensors, *shards.foreign}
    head = own_names(names)(HEAD)
    if not (config.tie_embeddings and head in names):
        return config, ()
    note = f"the config ties the embeddings, yet the checkpoint holds `{head}`, which serves"
    return replace(config, tie_embeddings=False), (note,)


def _with_layout(config: ModelConfig, shards: Shards) -> ModelConfig:
    """Experts as the files hold them: a tensor for each matrix unless two are merged in one."""
    mixture = config.mixture
    merged = f"{EXPERTS}.gate_up_proj"
    if mixture is None or not any(name.endswith(merged) for name in shards.tensors):
        return config
    return replace(config, mixture=replace(mixture, layout="merged"))


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
    return _accounted(Checkpoint(reference, path, config, weights, (), file, maps))


def _accounted(checkpoint: Checkpoint) -> Checkpoint:
    """With a note of what its files hold and no part of the model reads."""
    unused = checkpoint.unused
    if not unused:
        return checkpoint
    named = ", ".join(f"`{name}`" for name in unused[:SHOWN_UNUSED])
    more = len(unused) - SHOWN_UNUSED
    named += f" and {more} more" if more > 0 else ""
    return replace(checkpoint, notes=(*checkpoint.notes, f"no part of the model reads {named}"))


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
