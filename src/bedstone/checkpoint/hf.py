"""A checkpoint as Hugging Face keeps it: safetensors files beside `config.json`."""

from dataclasses import replace
from pathlib import Path

from bedstone.checkpoint.checkpoint import Checkpoint, Weights, accounted, require_weights
from bedstone.checkpoint.config import ModelConfig, require_config
from bedstone.checkpoint.hf_config import parse_hf_config, quant_method
from bedstone.checkpoint.hf_wrapped import own_names, text_fields
from bedstone.checkpoint.json_text import read_object
from bedstone.checkpoint.layers import EXPERTS
from bedstone.checkpoint.names import HEAD
from bedstone.checkpoint.shards import Shards, read_lone, read_shards
from bedstone.errors import WeightError

CONFIG, GENERATION = "config.json", "generation_config.json"


def open_hf(reference: str, path: Path) -> Checkpoint:
    """The checkpoint in a directory with a config, or in one file beside a config."""
    folder = path if path.is_dir() else path.parent
    shards = read_shards(path) if path.is_dir() else read_lone(path)
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
    return accounted(Checkpoint(reference, path, config, weights, notes, folder))


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
