"""The grammar of manifest v7: every object's fields, in canonical order, as shapes.

Whether a field may be left out, and what it then is, is the type's own default in
`bedstone.spec.manifest`: `None` also admits `null`.
"""

from typing import get_args

from bedstone.spec import manifest as m
from bedstone.spec.dtype import DType
from bedstone.spec.shape import (
    Boolean,
    ByField,
    ByTag,
    ByValue,
    Choice,
    Either,
    Integer,
    List,
    Number,
    Param,
    Positional,
    Record,
    Ref,
    Shape,
    Table,
    Text,
    Wrap,
    record,
)

U8 = Integer("u8", "uint8", 0, 2**8 - 1)
U16 = Integer("u16", "uint16", 0, 2**16 - 1)
U32 = Integer("u32", "uint32", 0, 2**32 - 1)
U64 = Integer("u64", "uint64", 0, 2**64 - 1)
INDEX = Integer("u64", "uint", 0, 2**64 - 1)
I32 = Integer("i32", "int32", -(2**31), 2**31 - 1)
I64 = Integer("i64", "int64", -(2**63), 2**63 - 1)
VERSION = Integer("u32", "uint32", 0, 2**32 - 1, literal=True)
F32 = Number("float", single=True)
F64 = Number("double")
TEXT = Text()
BOOLEAN = Boolean()


def _listed(words: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple((word,) for word in words)


def _literal(tag: str, type_: type, shape: Shape) -> Record:
    return record(type_, {tag: shape}, attributes={tag: "value"})


LITERALS: dict[str, Record | Wrap] = {
    "i32": _literal("i32", m.I32, I32),
    "i64": _literal("i64", m.I64, I64),
    "f32": _literal("f32", m.F32, F32),
    "u8": _literal("u8", m.U8, U8),
}
RANK = record(m.Rank, {"rank": TEXT}, attributes={"rank": "group"})
VAR = record(m.VarArg, {"var": TEXT})
EXPR = record(m.ExprArg, {"expr": Ref("Expr")})
PARAM = record(m.ParamArg, {"param": INDEX})
SCRATCH = record(m.ScratchArg, {"scratch": TEXT})
PAIR = List(U64, length=2)

_TMA = get_args(m.TmaDType)
_PLAIN_TMA = _TMA[: _TMA.index("tf32")]

_LAUNCH_ARGS = List(Ref("LaunchArg"))
_PARAMS = List(Ref("ParamType"))

DEFINITIONS: dict[str, Shape] = {
    # --- words
    "DType": Choice((get_args(DType),), rule="P8"),
    "TmaDType": Choice((_PLAIN_TMA, *_listed(_TMA[len(_PLAIN_TMA) :]))),
    "VarAxis": Choice(_listed(get_args(m.Axis))),
    "BufferKind": Choice(_listed(get_args(m.BufferKind))),
    "Placement": Choice((get_args(m.Placement),)),
    "Fill": Choice(_listed(get_args(m.Fill))),
    "ParamType": Param(),
    # --- numbers and expressions
    "Dim": Either((U64, TEXT)),
    "Bound": Either((I64, F64, Ref("Expr"))),
    "Expr": Either(
        (
            U64,
            TEXT,
            ByTag(
                {
                    "ceil_div": Wrap("ceil_div", Positional((Ref("Expr"), U64), m.CeilDiv)),
                    "mul": Wrap("mul", Positional((Ref("Expr"), U64), m.Mul)),
                    "add": Wrap("add", Positional((Ref("Expr"), Ref("Expr")), m.Add)),
                    "clamp": Wrap("clamp", Positional((Ref("Expr"), U64, U64), m.Clamp)),
                },
                closed=False,
            ),
        )
    ),
    # --- topology, cut, chat, vars
    "Topology": record(m.Topology, {"groups": Table(U64)}),
    "Cut": record(m.Cut, {"id": TEXT, "stage": U64, "stages": U64}),
    "Chat": record(m.Chat, {"tool_parser": TEXT}),
    "Var": record(m.Var, {"max": U64, "axis": Ref("VarAxis")}),
    # --- states
    "HostTensor": record(
        m.HostTensor, {"dtype": Ref("DType"), "shape": List(U64), "strides": List(U64)}
    ),
    "Shard": ByValue(
        "by",
        {
            "position": record(m.PositionShard, {"group": TEXT}),
            "heads": record(
                m.HeadsShard, {"group": TEXT, "segments": List(Positional((U64, U64)))}
            ),
        },
    ),
    "State": record(
        m.State,
        {
            "bytes_per_token": U64,
            "bytes": U64,
            "bytes_per_seq": U64,
            "host": Ref("HostTensor"),
            "shard": Ref("Shard"),
        },
    ),
    # --- buffers
    "TensorSource": Either((TEXT, record(m.RankedTensors, {"group": TEXT, "tensors": List(TEXT)}))),
    "Ranges": Either((PAIR, record(m.RankedRanges, {"group": TEXT, "ranges": List(PAIR)}))),
    "Interleave": record(
        m.Interleave, {"with": Ref("TensorSource"), "rows": U64}, attributes={"with": "with_"}
    ),
    "Segment": record(
        m.Segment,
        {
            "tensor": Ref("TensorSource"),
            "rows": Ref("Ranges"),
            "cols": Ref("Ranges"),
            "interleave": Ref("Interleave"),
        },
    ),
    "Domain": record(
        m.Domain,
        {
            "min": Ref("Bound"),
            "max": Ref("Bound"),
            "index_into": TEXT,
            "stride": U64,
            "monotone": BOOLEAN,
        },
    ),
    "Buffer": record(
        m.Buffer,
        {
            "dtype": Ref("DType"),
            "shape": List(Ref("Dim")),
            "kind": Ref("BufferKind"),
            "placement": Ref("Placement"),
            "fill": Ref("Fill"),
            "domain": Ref("Domain"),
            "export": BOOLEAN,
            "of": TEXT,
            "group": TEXT,
            "bind": List(Ref("Segment")),
        },
    ),
    "Module": record(m.Module, {"source": TEXT, "sha256": TEXT}),
    # --- ops
    "Op": record(m.Op, {"params": _PARAMS, "impl": Ref("Impl")}),
    "Impl": record(m.Impl, {"scratch": Table(Ref("Scratch")), "launches": List(Ref("Launch"))}),
    "Scratch": record(m.Scratch, {"dtype": Ref("DType"), "shape": List(Ref("Dim"))}),
    "Launch": ByField(
        frozenset({"module", "block", "grid"}), Ref("KernelLaunch"), Ref("ExternLaunch")
    ),
    "KernelLaunch": record(
        m.KernelLaunch,
        {
            "module": TEXT,
            "entry": TEXT,
            "params": _PARAMS,
            "block": List(U32, length=3),
            "grid": List(Ref("Expr"), length=3),
            "shared_mem": Ref("Expr"),
            "cluster": List(U32, length=3),
            "pdl": BOOLEAN,
            "when": Ref("When"),
            "args": _LAUNCH_ARGS,
        },
    ),
    "ExternLaunch": record(
        m.ExternLaunch,
        {
            "entry": TEXT,
            "params": _PARAMS,
            "when": Ref("When"),
            "algo": Ref("GemmAlgo"),
            "args": _LAUNCH_ARGS,
        },
    ),
    "GemmAlgo": record(
        m.GemmAlgo,
        {
            "id": I32,
            "tile": U32,
            "stages": U32,
            "split_k": I32,
            "reduction": U32,
            "swizzle": U32,
            "custom": U32,
            "inner_shape": U16,
            "cluster_shape": U16,
        },
    ),
    "When": record(m.When, {"var": TEXT, "min": U64, "max": U64}),
    "LaunchArg": ByTag(
        {
            "param": PARAM,
            "scratch": SCRATCH,
            **LITERALS,
            "rank": RANK,
            "pack": Wrap("pack", Ref("Pack")),
        }
    ),
    "Pack": record(m.Pack, {"size": U32, "fields": List(Ref("Field"))}),
    "Field": record(
        m.PackField,
        {
            "at": U32,
            "width": U32,
            "source": ByTag(
                {
                    "param": PARAM,
                    "scratch": SCRATCH,
                    **LITERALS,
                    "var": VAR,
                    "expr": EXPR,
                    "rank": RANK,
                    "tensormap": Wrap("tensormap", Ref("TensorMap")),
                },
                closed=False,
            ),
        },
        flat="source",
    ),
    "TensorMap": record(
        m.TensorMap,
        {
            "param": INDEX,
            "dtype": Ref("TmaDType"),
            "dims": List(U64),
            "strides": List(U64),
            "box": List(U32),
            "swizzle": U32,
            "l2_promotion": U32,
            "oob_nan": BOOLEAN,
            "wrap": BOOLEAN,
        },
    ),
    # --- programs
    "Program": record(
        m.Program,
        {
            "batch": Ref("Batch"),
            "once": BOOLEAN,
            "derive": BOOLEAN,
            "graph": BOOLEAN,
            "calls": List(Ref("Call")),
        },
    ),
    "Batch": record(m.Batch, {"groups": U64, "rows": Ref("Dim"), "context": TEXT}),
    "Call": record(m.Call, {"label": TEXT, "op": TEXT, "args": List(Ref("Arg"))}),
    "Arg": ByTag(
        {
            "buf": record(m.BufArg, {"buf": TEXT, "offset": U64}),
            "state": record(m.StateArg, {"state": TEXT, "offset": U64}),
            "var": VAR,
            "expr": EXPR,
            **LITERALS,
            "rank": RANK,
        }
    ),
}

MANIFEST = record(
    m.Manifest,
    {
        "schema_version": VERSION,
        "model": TEXT,
        "topology": Ref("Topology"),
        "cut": Ref("Cut"),
        "vars": Table(Ref("Var")),
        "states": Table(Ref("State")),
        "buffers": Table(Ref("Buffer")),
        "modules": Table(Ref("Module")),
        "ops": Table(Ref("Op")),
        "programs": Table(Ref("Program")),
        "chat": Ref("Chat"),
    },
    required=("schema_version",),
)
