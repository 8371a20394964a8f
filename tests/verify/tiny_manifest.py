"""One tiny manifest with a bit of everything, for tests to break one field at a time."""

import copy
import json
from typing import Any

Json = Any

ABSENT = object()
"""As a change's value: the member is removed."""

KERNEL = {"module": "k", "block": [32, 1, 1], "grid": [1, 1, 1]}
MAP = {"param": 2, "dtype": "bf16", "dims": [16, 4], "strides": [32], "box": [8, 4], "swizzle": 32}
ALGO = {
    "id": 1, "tile": 2, "stages": 3, "split_k": 1, "reduction": 0,
    "swizzle": 0, "custom": 0, "inner_shape": 0, "cluster_shape": 0,
}  # fmt: skip

TINY: Json = {
    "schema_version": 7,
    "model": "tiny",
    "topology": {"groups": {"tp": 2}},
    "cut": {"id": "c0ffee", "stage": 0, "stages": 2},
    "vars": {"n": {"max": 8, "axis": "rows"}, "g": {"max": 4, "axis": "groups"}},
    "states": {
        "flag": {"bytes": 8},
        "kv": {"bytes_per_token": 64, "shard": {"by": "position", "group": "tp"}},
        "lent": {"host": {"dtype": "f32", "shape": [0, 4], "strides": [4, 1]}},
        "rec": {
            "bytes_per_seq": 96,
            "shard": {"by": "heads", "group": "tp", "segments": [[2, 96]]},
        },
    },
    "buffers": {
        "ids": {
            "dtype": "i64",
            "shape": ["n"],
            "kind": "input",
            "fill": "token",
            "domain": {"min": 0, "max": 99},
        },
        "lines": {
            "dtype": "i32",
            "shape": ["g"],
            "kind": "input",
            "domain": {"index_into": "rec", "stride": 8},
        },
        "mail": {"dtype": "i32", "shape": [4], "kind": "carry", "export": True},
        "mail_at": {"dtype": "u64", "shape": [2], "kind": "peer", "of": "mail", "group": "tp"},
        "next": {"dtype": "i64", "shape": ["n"], "kind": "output", "fill": "tokens"},
        "packed": {"dtype": "bf16", "shape": [16, 16], "kind": "carry"},
        "raw": {"dtype": "bf16", "shape": [16, 16], "kind": "source", "bind": [{"tensor": "r"}]},
        "w": {
            "dtype": "bf16",
            "shape": [16, 16],
            "kind": "weight",
            "placement": "host",
            "bind": [{"tensor": "w", "rows": [0, 8]}, {"tensor": "v"}],
        },
        "wide": {
            "dtype": "bf16",
            "shape": [16, 16],
            "kind": "weight",
            "bind": [
                {
                    "tensor": {"group": "tp", "tensors": ["a", "b"]},
                    "rows": {"group": "tp", "ranges": [[0, 4], [4, 8]]},
                },
                {"tensor": "c", "interleave": {"with": "d", "rows": 2}},
            ],
        },
        "x": {"dtype": "bf16", "shape": ["n", 16], "kind": "workspace"},
        "y": {"dtype": "bf16", "shape": ["n", 16], "kind": "workspace"},
    },
    "modules": {"k": {"source": "k.cubin", "sha256": "ab" * 32}},
    "ops": {
        "embed": {
            "params": ["in buffer<i64>", "in buffer<bf16>", "out buffer<bf16>", "i32"],
            "impl": {
                "scratch": {"t": {"dtype": "f32", "shape": ["n", 2]}},
                "launches": [
                    {
                        **KERNEL,
                        "entry": "part",
                        "grid": [{"ceil_div": ["n", 4]}, 1, 1],
                        "shared_mem": {"mul": ["n", 4]},
                        "cluster": [1, 1, 1],
                        "when": {"var": "n", "min": 1, "max": 8},
                        "params": [
                            "in buffer<i64>",
                            "in buffer<bf16>",
                            "out buffer<f32>",
                            "bytes<192>",
                            "i64",
                        ],
                        "args": [
                            {"param": 0},
                            {"param": 1},
                            {"scratch": "t"},
                            {
                                "pack": {
                                    "size": 192,
                                    "fields": [
                                        {"at": 0, "tensormap": MAP},
                                        {"at": 128, "param": 3},
                                        {"at": 132, "expr": {"mul": ["n", 2]}},
                                        {"at": 136, "rank": "tp"},
                                        {"at": 140, "var": "n"},
                                        {"at": 144, "scratch": "t"},
                                    ],
                                }
                            },
                            {"rank": "tp"},
                        ],
                    },
                    {
                        **KERNEL,
                        "entry": "final",
                        "params": ["in buffer<f32>", "inout buffer<bf16>", "i32", "f32"],
                        "args": [{"scratch": "t"}, {"param": 2}, {"param": 3}, {"f32": 0.5}],
                    },
                ],
            },
        },
        "gemm": {
            "params": ["in buffer<bf16>", "in buffer<bf16>", "out buffer<bf16>", "i32"],
            "impl": {"launches": [{"entry": "extern:cublaslt_bf16_tn", "algo": ALGO}]},
        },
        "mix": {
            "params": [
                "in buffer<bf16>",
                "in buffer<bf16>",
                "in buffer<bf16>",
                "in buffer<i32>",
                "inout state",
                "inout state",
                "in state",
                "out state",
                "out buffer<i64>",
                "i64",
                "u8",
                "f32",
                "i32",
            ],
            "impl": {"launches": [{**KERNEL, "entry": "mix"}]},
        },
        "prepare": {
            "params": ["in buffer<bf16>", "out buffer<bf16>"],
            "impl": {"launches": [{**KERNEL, "entry": "prepare"}]},
        },
        "send": {
            "params": ["in buffer<u64>", "out buffer<i32>"],
            "impl": {"launches": [{**KERNEL, "entry": "send"}]},
        },
    },
    "programs": {
        "load": {
            "derive": True,
            "calls": [{"op": "prepare", "args": [{"buf": "raw"}, {"buf": "packed"}]}],
        },
        "start": {
            "once": True,
            "calls": [{"op": "send", "args": [{"buf": "mail_at"}, {"buf": "mail"}]}],
        },
        "step": {
            "batch": {"groups": 4, "rows": "n", "context": "g"},
            "graph": True,
            "calls": [
                {
                    "op": "embed",
                    "args": [{"buf": "ids"}, {"buf": "wide"}, {"buf": "x"}, {"i32": 16}],
                },
                {"op": "gemm", "args": [{"buf": "x"}, {"buf": "w"}, {"buf": "y"}, {"var": "n"}]},
                {
                    "op": "mix",
                    "label": "last",
                    "args": [
                        {"buf": "x"},
                        {"buf": "y", "offset": 2},
                        {"buf": "packed"},
                        {"buf": "lines"},
                        {"state": "kv"},
                        {"state": "rec", "offset": 8},
                        {"state": "lent"},
                        {"state": "flag"},
                        {"buf": "next"},
                        {"expr": {"mul": ["n", 2]}},
                        {"u8": 1},
                        {"f32": 0.5},
                        {"rank": "tp"},
                    ],
                },
            ],
        },
    },
}


def broken(*changes: tuple[str, Json]) -> str:
    """The text of the tiny manifest with each member at a pointer set, added or removed."""
    manifest = copy.deepcopy(TINY)
    for pointer, value in changes:
        *parents, last = (p.replace("~1", "/") for p in pointer.split("/")[1:])
        at = manifest
        for step in parents:
            at = at[int(step)] if isinstance(at, list) else at[step]
        key = int(last) if isinstance(at, list) and last != "-" else last
        if value is ABSENT:
            del at[key]
        elif key == "-":
            at.append(value)
        else:
            at[key] = value
    return json.dumps(manifest)
