"""A manifest the size of a large model's: 93 layers, about 2,500 calls."""

from typing import Any

LAYERS = 93
CALLS_PER_LAYER = 27


def large_manifest(layers: int = LAYERS, calls: int = CALLS_PER_LAYER) -> dict[str, Any]:
    """Every call of every layer has its own weight, label and place in the paged state."""
    weights = [f"model.layers.{i}.w{j}.weight" for i in range(layers) for j in range(calls)]
    return {
        "schema_version": 7,
        "model": "large",
        "vars": {
            "tokens": {"max": 2048, "axis": "rows"},
            "seqs": {"max": 256, "axis": "groups"},
        },
        "states": {"kv": {"bytes_per_token": 2 * 1024 * layers}},
        "buffers": _buffers(weights),
        "modules": {f"m{j}": {"source": f"m{j}.cubin", "sha256": f"{j:064x}"} for j in range(9)},
        "ops": {f"op{j}": _op(j) for j in range(calls)},
        "programs": {
            "decode": {
                "batch": {"groups": 256, "rows": 1},
                "graph": True,
                "calls": [
                    _call(i, j, weights[i * calls + j]) for i in range(layers) for j in range(calls)
                ],
            }
        },
    }


def _buffers(weights: list[str]) -> dict[str, Any]:
    hidden = {"dtype": "bf16", "shape": ["tokens", 4096]}
    return {
        "in": hidden | {"kind": "input"},
        "hidden": hidden | {"kind": "workspace"},
        "out": hidden | {"kind": "output"},
    } | {
        name: {
            "dtype": "bf16",
            "shape": [4096, 4096],
            "kind": "weight",
            "bind": [{"tensor": f"{name}.a", "rows": [0, 2048]}, {"tensor": f"{name}.b"}],
        }
        for name in weights
    }


def _op(index: int) -> dict[str, Any]:
    fields = [
        {"at": 0, "param": 1},
        {"at": 8, "i32": 3},
        {"at": 16, "expr": {"mul": ["tokens", 2]}},
    ]
    return {
        "params": [
            "out buffer<bf16>", "in buffer<bf16>", "in buffer<bf16>", "inout state",
            "i32", "f32", "i32",
        ],
        "impl": {
            "scratch": {"part": {"dtype": "f32", "shape": ["tokens", 64]}},
            "launches": [
                {
                    "module": f"m{index % 9}",
                    "entry": f"kernel_{index}",
                    "params": [
                        "out buffer<f32>", "in buffer<bf16>", "in buffer<bf16>", "inout state",
                        "i32", "f32", "i32",
                    ],
                    "block": [256, 1, 1],
                    "grid": [{"ceil_div": ["tokens", 128]}, {"mul": ["seqs", 4]}, 1],
                    "shared_mem": 49152,
                    "pdl": True,
                    "args": [{"scratch": "part"}, *({"param": i} for i in range(1, 7))],
                },
                {
                    "module": f"m{index % 9}",
                    "entry": "join",
                    "params": ["in buffer<f32>", "out buffer<bf16>", "bytes<24>"],
                    "block": [256, 1, 1],
                    "grid": ["tokens", 1, 1],
                    "args": [
                        {"scratch": "part"},
                        {"param": 0},
                        {"pack": {"size": 24, "fields": fields}},
                    ],
                },
            ],
        },
    }  # fmt: skip


def _call(layer: int, index: int, weight: str) -> dict[str, Any]:
    first, last = layer == 0 and index == 0, index == CALLS_PER_LAYER - 1
    return {
        "label": f"l{layer}.op{index}",
        "op": f"op{index}",
        "args": [
            {"buf": "out" if last else "hidden"},
            {"buf": "in" if first else "hidden"},
            {"buf": weight},
            {"state": "kv", "offset": layer * 2048},
            {"i32": 4096},
            {"f32": 1e-6},
            {"var": "tokens"},
        ],
    }
