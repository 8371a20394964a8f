"""Inputs, results and errors, over ours."""

from pathlib import Path

from bedstone.prove.inputs.make import make
from bedstone.prove.inputs.recipe import Coins, Normal
from bedstone.prove.inputs.workload import Inputs
from bedstone.prove.judge import judge
from bedstone.prove.results import Expected, as_tensor, named_results
from bedstone.spec.dialect.workload import parse_workload
from flashinfer_bench.data import plain


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def _rand_tensor(shape, dtype, _device):
    recipe = Coins() if name_of(dtype) == "bool" else Normal()
    return make(recipe, name_of(dtype), tuple(shape), 0, {})


def normalize_outputs(out, device, output_names, output_dtypes):  # noqa: ARG001
    every = [Expected(n, name_of(output_dtypes[n]), None) for n in output_names]
    return {
        each.name: as_tensor(
            value, Expected(each.name, each.dtype, tuple(getattr(value, "shape", ())) or None)
        )
        for each, value in zip(every, named_results(out, every).values(), strict=True)
    }


def load_safetensors(_definition, workload):
    """The folder that stored inputs lie in: we read them when they are asked for."""
    paths = [i["path"] for i in plain(workload)["inputs"].values() if i["type"] == "safetensors"]
    return Path(paths[0]).parent


def gen_inputs(definition, workload, device, safe_tensors):  # noqa: ARG001
    own = parse_workload(plain(workload)).require("workload")
    return list(Inputs(definition.own, own, safe_tensors or None).trial(0, 0).values())


def compute_error_stats(found, expected, config):
    metrics = judge(found, expected, "float32", config.own.tolerance)
    errors = (metrics.max_absolute_error, metrics.max_relative_error)
    return (*errors, not metrics.fits, metrics.matched)
