"""Each rule, broken by itself: which fault it yields, where, and whom it blames."""

from dataclasses import dataclass
from typing import Any

import pytest

from bedstone.spec.codec import parse
from bedstone.verify import RULES, check
from verify.tiny_manifest import ABSENT, KERNEL, broken

PART = "/ops/embed/impl/launches/0"
FINAL = "/ops/embed/impl/launches/1"
GEMM = "/ops/gemm/impl/launches/0"
PACK = f"{PART}/args/3/pack"
MAP = f"{PACK}/fields/0/tensormap"
BLOCKS = {"dtype": "i32", "shape": [3], "kind": "input", "fill": "blocks"}
CALLS = "/programs/step/calls"


@dataclass(frozen=True, slots=True)
class Break:
    """Changes to the tiny manifest and the faults they cause, the rule's own first."""

    rule: str
    path: str
    objects: str
    changes: tuple[tuple[str, Any], ...]
    also: str = ""


def row(rule: str, path: str, objects: str, *changes: tuple[str, Any], also: str = "") -> Break:
    return Break(rule, path, objects, changes, also)


TOP = (
    row("F1", "/schema_version", "", ("/schema_version", 6)),
    row("K1", "/cut", "", ("/cut/stage", 2)),
    row("V1", "/vars/z/max", "var z", ("/vars/z", {"max": 0}), also="U2"),
    row("V2", "/vars", "var g, var n", ("/vars/g/axis", "rows")),
    row("V3", "/vars/g/axis", "var g, state kv, group tp", ("/vars/g/axis", "ranks")),
    row("T1", "/topology/groups/z", "group z", ("/topology/groups/z", 0), also="T2"),
    row("T2", "/topology/groups/z", "group z", ("/topology/groups/z", 2)),
    row("T3", f"{PART}/args/4", "op embed, group z", (f"{PART}/args/4/rank", "z")),
    row(
        "T4",
        "/states/kv/shard",
        "state kv, group tp",
        ("/topology", ABSENT),
        also="T4 " * 7,
    ),
)
STATES = (
    row("S1", "/states/flag", "state flag", ("/states/flag", {})),
    row("S2", "/states/flag", "state flag", ("/states/flag/bytes_per_seq", 8)),
    row("S3", "/states/lent", "state lent", ("/states/lent/bytes", 8)),
    row("S4", "/states/lent/host", "state lent", ("/states/lent/host/strides", [1])),
    row(
        "S5",
        "/states/lent/host/shape",
        "state lent",
        ("/states/lent/host/shape", [4, 0]),
        also="S7",
    ),
    row("S6", "/states/lent/host/strides", "state lent", ("/states/lent/host/strides/1", 0)),
    row(
        "S7",
        "/states/lent/host",
        "state lent",
        ("/states/lent/host/shape/0", 2),
        ("/states/lent/host/strides/0", 2**62),
    ),
    row(
        "S9",
        "/states/flag/shard",
        "state flag",
        ("/states/flag/shard", {"by": "position", "group": "tp"}),
    ),
    row(
        "S10",
        "/states/rec",
        "state rec, state kv, group tp",
        ("/states/rec", {"bytes_per_token": 8}),
    ),
    row(
        "S11",
        "/states/rec/shard/group",
        "state rec, state kv, group ep, group tp",
        ("/topology/groups/ep", 2),
        ("/states/rec", {"bytes_per_token": 8, "shard": {"by": "position", "group": "ep"}}),
    ),
    row(
        "S12",
        "/states/flag/shard",
        "state flag",
        ("/states/flag/shard", {"by": "heads", "group": "tp", "segments": []}),
    ),
    row("S13", "/states/rec/shard/segments", "state rec", ("/states/rec/shard/segments", [])),
    row(
        "S14",
        "/states/rec/shard/segments/1",
        "state rec",
        ("/states/rec/shard/segments/-", [0, 4]),
    ),
    row(
        "S15",
        "/states/rec/shard/segments/0/1",
        "state rec, group tp",
        ("/states/rec/shard/segments/0", [64, 3]),
    ),
    row(
        "S16",
        "/states/rec/shard/segments",
        "state rec, group tp",
        ("/states/rec/shard/segments/0/0", 3),
    ),
    row("S17", "/states/spare", "state spare", ("/states/spare", {"bytes": 1})),
)
BUFFERS = (
    row("B1", "/buffers/raw/shape", "buffer raw", ("/buffers/raw/shape", [])),
    row("B2", "/buffers/raw/shape/1", "buffer raw", ("/buffers/raw/shape/1", 0)),
    row("B3", "/buffers/raw/shape/0", "buffer raw, var q", ("/buffers/raw/shape/0", "q")),
    row("B4", "/buffers/raw/shape", "buffer raw", ("/buffers/raw/shape/0", 2**60)),
    row(
        "B5",
        "/buffers/z",
        "buffer z",
        ("/buffers/z", {"dtype": "u8", "shape": [1], "kind": "workspace"}),
    ),
    row("D1", "/buffers/lines/domain", "buffer lines", ("/buffers/lines/domain/min", 0)),
    row("D2", "/buffers/ids/domain", "buffer ids", ("/buffers/ids/domain", {})),
    row("D3", "/buffers/lines/domain/stride", "buffer lines", ("/buffers/lines/domain/stride", 0)),
    row("D4", "/buffers/ids/domain/stride", "buffer ids", ("/buffers/ids/domain/stride", 2)),
    row(
        "D5",
        "/buffers/x/domain/index_into",
        "buffer x",
        ("/buffers/x/domain", {"index_into": "y"}),
    ),
    row(
        "D6",
        "/buffers/lines/domain/index_into",
        "buffer lines, target q",
        ("/buffers/lines/domain/index_into", "q"),
    ),
    row(
        "D7",
        "/buffers/lines/domain/index_into",
        "buffer lines, buffer x, state x",
        ("/states/x", {"bytes": 1}),
        ("/buffers/lines/domain/index_into", "x"),
        also="S17",
    ),
    row(
        "D8",
        "/buffers/lines/domain/index_into",
        "buffer lines",
        ("/buffers/lines/domain/index_into", "lines"),
    ),
    row(
        "D9",
        "/buffers/lines/domain/index_into",
        "buffer lines, state rec",
        ("/buffers/lines/domain/stride", 7),
    ),
    row("D10", "/buffers/x/domain/monotone", "buffer x", ("/buffers/x/domain", {"monotone": True})),
    row("D11", "/buffers/ids/domain/min", "buffer ids", ("/buffers/ids/domain/min", -0.0)),
    row("D13", "/buffers/ids/domain", "buffer ids", ("/buffers/ids/domain/max", -1)),
    row("L1", "/buffers/ids/fill", "buffer ids", ("/buffers/ids/fill", "tokens")),
    row("L2", "/buffers/mail/fill", "buffer mail", ("/buffers/mail/fill", "error")),
    row("L3", "/buffers/ids/fill", "buffer ids", ("/buffers/ids/fill", "temperature")),
    row(
        "L4",
        "/buffers/blocks/fill",
        "buffer blocks, state kv, group tp",
        ("/buffers/blocks", BLOCKS),
        also="B5",
    ),
    row("H1", "/buffers/w/placement", "buffer w", ("/buffers/w/export", True)),
    row("H2", "/buffers/wide/placement", "buffer wide", ("/buffers/wide/placement", "host")),
)
BIND = (
    row("N1", "/buffers/w", "buffer w", ("/buffers/w/bind", ABSENT)),
    row("N2", "/buffers/ids/bind", "buffer ids", ("/buffers/ids/bind", [{"tensor": "q"}])),
    row("N3", "/buffers/w/bind/1/tensor", "buffer w", ("/buffers/w/bind/1/tensor", "")),
    row(
        "N4",
        "/buffers/wide/bind/0/tensor",
        "buffer wide, group tp",
        ("/buffers/wide/bind/0/tensor/tensors", ["a"]),
    ),
    row(
        "N5",
        "/buffers/wide/bind/0/rows",
        "buffer wide, group tp",
        ("/buffers/wide/bind/0/rows/ranges/-", [8, 9]),
    ),
    row("N6", "/buffers/w/bind/0/rows", "buffer w", ("/buffers/w/bind/0/rows", [8, 8])),
    row(
        "N7",
        "/buffers/wide/bind/1/interleave/rows",
        "buffer wide",
        ("/buffers/wide/bind/1/interleave/rows", 0),
    ),
    row(
        "N8",
        "/buffers/wide/bind/1/interleave",
        "buffer wide",
        ("/buffers/wide/bind/1/cols", [0, 4]),
    ),
    row("X1", "/buffers/mail_at/export", "buffer mail_at", ("/buffers/mail_at/export", True)),
    row(
        "X2",
        "/buffers/mail_at/dtype",
        "buffer mail_at",
        ("/buffers/mail_at/dtype", "i64"),
        also="Z4",
    ),
    row("X3", "/buffers/mail_at/domain", "buffer mail_at", ("/buffers/mail_at/domain", {"min": 0})),
    row("X4", "/buffers/mail_at", "buffer mail_at", ("/buffers/mail_at/of", ABSENT)),
    row("X5", "/buffers/mail_at/of", "buffer mail_at", ("/buffers/mail_at/of", "mail_at")),
    row(
        "X6",
        "/buffers/mail_at/of",
        "buffer mail_at, buffer mail, state mail",
        ("/states/mail", {"bytes": 1}),
        also="S17",
    ),
    row(
        "X7",
        "/buffers/z/of",
        "buffer z, buffer mail_at",
        (
            "/buffers/z",
            {"dtype": "u64", "shape": [2], "kind": "peer", "of": "mail_at", "group": "tp"},
        ),
        also="B5",
    ),
    row(
        "X8", "/buffers/mail_at/of", "buffer mail_at, buffer mail", ("/buffers/mail/export", False)
    ),
    row("X9", "/buffers/mail_at/of", "buffer mail_at, state lent", ("/buffers/mail_at/of", "lent")),
    row("X10", "/buffers/mail_at/of", "buffer mail_at, target q", ("/buffers/mail_at/of", "q")),
    row("X11", "/buffers/mail_at", "buffer mail_at", ("/buffers/mail_at/group", ABSENT)),
    row(
        "X12",
        "/buffers/mail_at/shape",
        "buffer mail_at, group tp",
        ("/buffers/mail_at/shape", [3]),
    ),
    row("X13", "/buffers/x/of", "buffer x", ("/buffers/x/of", "mail")),
    row("X14", "/buffers/x/group", "buffer x", ("/buffers/x/group", "tp")),
    row("X15", "/buffers/raw/export", "buffer raw", ("/buffers/raw/export", True)),
    row("M1", "/modules/k/sha256", "module k", ("/modules/k/sha256", "ab")),
    row("M2", "/modules/k/source", "module k", ("/modules/k/source", "")),
    row("M3", "/modules/k/source", "module k", ("/modules/k/source", "hf:org/repo/../k")),
    row("M4", "/modules/k/source", "module k", ("/modules/k/source", "https://host/")),
    row("M5", "/modules/k/source", "module k", ("/modules/k/source", "s3://bucket/k")),
    row(
        "M7",
        "/modules/z",
        "module z",
        ("/modules/z", {"source": "z", "sha256": "cd" * 32}),
    ),
)
OPS = (
    row(
        "O1",
        "/ops/prepare/params/2",
        "op prepare",
        ("/ops/prepare/params/-", "bytes<8>"),
        also="A3 Z2 U1 B5",
    ),
    row("O3", "/ops/send/impl/launches", "op send", ("/ops/send/impl/launches", []), also="O4"),
    row(
        "O4",
        "/ops/send/params/1",
        "op send",
        ("/ops/send/impl/launches/0/params", []),
        ("/ops/send/impl/launches/0/args", []),
    ),
    row(
        "O5",
        "/ops/embed/impl/scratch/z",
        "op embed, scratch z",
        ("/ops/embed/impl/scratch/z", {"dtype": "u8", "shape": [1]}),
    ),
    row(
        "O6",
        "/ops/z",
        "op z",
        ("/ops/z", {"params": [], "impl": {"launches": [{**KERNEL, "entry": "z"}]}}),
    ),
    row("W1", f"{PART}/when/var", "op embed, var q", (f"{PART}/when/var", "q")),
    row("W2", f"{PART}/when", "op embed, var n", (f"{PART}/when/min", 9)),
    row("W5", f"{GEMM}/algo", "op gemm", (f"{GEMM}/entry", "extern:any")),
    row("G1", f"{PART}/entry", "op embed", (f"{PART}/entry", "")),
    row("G2", f"{PART}/entry", "op embed", (f"{PART}/entry", "extern:any")),
    row("G3", f"{GEMM}/entry", "op gemm", (f"{GEMM}/entry", "gemm"), also="W5"),
    row("G4", f"{PART}/module", "op embed, module q", (f"{PART}/module", "q")),
    row("G5", f"{PART}/block", "op embed", (f"{PART}/block", [1025, 1, 1])),
    row("G6", f"{PART}/block/2", "op embed", (f"{PART}/block", [1, 1, 65])),
    row("G7", f"{PART}/grid/1", "op embed", (f"{PART}/grid/1", {"mul": ["n", 8192]})),
    row("G8", f"{PART}/grid/1", "op embed", (f"{PART}/grid/1", 0)),
    row("G9", f"{PART}/grid/1", "op embed", (f"{PART}/grid/1", {"mul": ["n", 2**63]})),
    row("G10", f"{PART}/shared_mem", "op embed", (f"{PART}/shared_mem", 232_449)),
    row("G11", f"{PART}/cluster", "op embed", (f"{PART}/cluster", [17, 1, 1])),
    row("G12", f"{PART}/grid/0", "op embed", (f"{PART}/cluster", [2, 1, 1])),
    row("E1", f"{PART}/grid/0/ceil_div/0", "op embed, var q", (f"{PART}/grid/0/ceil_div/0", "q")),
    row(
        "E2",
        f"{PART}/shared_mem/ceil_div/1",
        "op embed",
        (f"{PART}/shared_mem", {"ceil_div": ["n", 0]}),
    ),
    row("E3", f"{PART}/shared_mem/mul/1", "op embed", (f"{PART}/shared_mem/mul/1", 0)),
)
ARGUMENTS = (
    row("A1", f"{FINAL}/args", "op embed", (f"{FINAL}/args/-", {"i32": 1})),
    row("A2", f"{FINAL}/args/2", "op embed", (f"{FINAL}/args/2/param", 4)),
    row("A3", f"{FINAL}/args/2", "op embed", (f"{FINAL}/params/2", "i64")),
    row("A4", f"{PART}/args/0", "op embed", (f"{PART}/params/0", "out buffer<i64>")),
    row(
        "A5",
        f"{FINAL}/args/1",
        "op embed",
        (f"{PACK}/fields/0", {"at": 0, "i32": 1}),
    ),
    row("A6", f"{FINAL}/args/0", "op embed, scratch q", (f"{FINAL}/args/0/scratch", "q")),
    row(
        "A7",
        f"{FINAL}/args/0",
        "op embed, scratch t",
        (f"{FINAL}/params/0", "in state"),
    ),
    row("A8", f"{FINAL}/args/0", "op embed, scratch t", (f"{FINAL}/params/0", "in buffer<f16>")),
    row("A9", f"{PART}/args/2", "op embed, scratch t", (f"{PART}/params/2", "inout buffer<f32>")),
    row("A10", f"{FINAL}/args/3", "op embed", (f"{FINAL}/args/3", {"i32": 1})),
    row("A11", f"{PART}/args/4", "op embed", (f"{PART}/params/4", "u8")),
    row("A12", f"{GEMM}/params", "op gemm", (f"{GEMM}/params", ["bytes<8>"]), also="A1 O4"),
    row("Q1", f"{PACK}/size", "op embed", (f"{PACK}/size", 256)),
    row("Q2", f"{PART}/args/3/pack", "op embed", (f"{PART}/params/3", "i64")),
    row("Q3", f"{PACK}/fields/5/at", "op embed", (f"{PACK}/fields/5/at", 185)),
    row("Q4", f"{PACK}/fields/2/at", "op embed", (f"{PACK}/fields/2/at", 130)),
    row("Q5", f"{PACK}/fields/1/width", "op embed", (f"{PACK}/fields/1/width", 0)),
    row("Q6", f"{PACK}/fields/1", "op embed", (f"{PACK}/fields/1/param", 4), also="Q5"),
    row("Q7", f"{PACK}/fields/5", "op embed, scratch q", (f"{PACK}/fields/5/scratch", "q")),
    row("Q8", f"{PACK}/fields/4", "op embed, var q", (f"{PACK}/fields/4/var", "q")),
    row("R1", f"{PACK}/fields/0/width", "op embed", (f"{PACK}/fields/0/width", 64)),
    row("R2", f"{PACK}/fields/0/at", "op embed", (f"{PACK}/fields/0/at", 8), also="Q4"),
    row("R3", f"{MAP}/dims", "op embed", (f"{MAP}/dims", [16, 1, 1, 1, 1, 1]), also="R15"),
    row("R4", f"{MAP}/strides", "op embed", (f"{MAP}/strides", [32, 32]), also="R15"),
    row("R5", f"{MAP}/box", "op embed", (f"{MAP}/box", [8])),
    row("R6", f"{MAP}/dims/0", "op embed", (f"{MAP}/dims/0", 0)),
    row("R7", f"{MAP}/box/1", "op embed", (f"{MAP}/box/1", 257)),
    row("R8", f"{MAP}/strides/0", "op embed", (f"{MAP}/strides/0", 8)),
    row("R9", f"{MAP}/dims/0", "op embed", (f"{MAP}/dims/0", 12)),
    row("R10", f"{MAP}/box/0", "op embed", (f"{MAP}/box/0", 4)),
    row("R11", f"{MAP}/box/0", "op embed", (f"{MAP}/box/0", 24)),
    row("R12", f"{MAP}/swizzle", "op embed", (f"{MAP}/swizzle", 48)),
    row("R13", f"{MAP}/l2_promotion", "op embed", (f"{MAP}/l2_promotion", 32)),
    row("R14", f"{MAP}/param", "op embed", (f"{MAP}/param", 3), also="A5"),
    row("R15", f"{MAP}/wrap", "op embed", (f"{MAP}/wrap", True)),
    row(
        "R16",
        f"{CALLS}/0/args/2",
        "program step, buffer x, op embed",
        (f"{CALLS}/0/args/2/offset", 192),
    ),
)
PROGRAMS = (
    row(
        "Y1",
        "/programs",
        "",
        ("/programs", {}),
        also="U1 U1 U1 " + "B5 " * 10 + "O6 " * 5 + "S17 " * 4,
    ),
    row(
        "Y2",
        "/programs/start",
        "program start",
        ("/programs/start/batch", {"groups": 1, "rows": 1}),
    ),
    row("Y3", "/programs/load/derive", "program load", ("/programs/load/once", True)),
    row("Y4", "/programs/start/graph", "program start", ("/programs/start/graph", True)),
    row("Y5", "/programs/step/batch/groups", "program step", ("/programs/step/batch/groups", 0)),
    row("Y6", "/programs/step/batch/rows", "program step", ("/programs/step/batch/rows", 0)),
    row(
        "Y7", "/programs/step/batch/rows", "program step, var q", ("/programs/step/batch/rows", "q")
    ),
    row(
        "Y8",
        "/programs/step/batch/context",
        "program step, var q",
        ("/programs/step/batch/context", "q"),
    ),
    row("Z1", f"{CALLS}/3/op", "program step, op q", (f"{CALLS}/-", {"op": "q", "args": []})),
    row("Z2", f"{CALLS}/3/args", "program step, op mix", (f"{CALLS}/-", {"op": "mix", "args": []})),
    row("Z3", f"{CALLS}/2/args/0/buf", "program step, buffer q", (f"{CALLS}/2/args/0/buf", "q")),
    row("Z4", f"{CALLS}/2/args/0", "program step, buffer ids", (f"{CALLS}/2/args/0/buf", "ids")),
    row(
        "Z5", f"{CALLS}/2/args/1/offset", "program step, buffer y", (f"{CALLS}/2/args/1/offset", 3)
    ),
    row(
        "Z6",
        f"{CALLS}/2/args/1/offset",
        "program step, buffer y",
        (f"{CALLS}/2/args/1/offset", 256),
    ),
    row(
        "Z7",
        f"{CALLS}/0/args/1",
        "program step, buffer y",
        (f"{CALLS}/0/args/1/buf", "y"),
        also="B5",
    ),
    row(
        "Z8",
        f"{CALLS}/1/args/2",
        "program step, buffer w",
        (f"{CALLS}/1/args/2/buf", "w"),
        also="Z7",
    ),
    row("Z9", f"{CALLS}/2/args/2", "program step, buffer raw", (f"{CALLS}/2/args/2/buf", "raw")),
    row(
        "Z10",
        "/programs/load/calls/0/args/0",
        "program load, buffer i",
        ("/buffers/i", {"dtype": "bf16", "shape": [1], "kind": "input"}),
        ("/programs/load/calls/0/args/0/buf", "i"),
        also="B5",
    ),
    row(
        "Z11",
        "/programs/load/calls/0/args/0/state",
        "program load, state flag",
        ("/ops/prepare/params/0", "in state"),
        ("/programs/load/calls/0/args/0", {"state": "flag"}),
        also="B5",
    ),
    row(
        "Z12",
        "/programs/load/calls/0/op",
        "program load, op prepare",
        ("/ops/prepare/impl/launches/-", {"entry": "extern:nccl_any", "params": [], "args": []}),
    ),
    row(
        "Z13",
        f"{CALLS}/2/args/4/state",
        "program step, state q",
        (f"{CALLS}/2/args/4/state", "q"),
        also="S17",
    ),
    row("Z14", f"{CALLS}/1/args/3/var", "program step, var q", (f"{CALLS}/1/args/3/var", "q")),
    row(
        "Z15", f"{CALLS}/2/args/11/var", "program step, var n", (f"{CALLS}/2/args/11", {"var": "n"})
    ),
    row(
        "Z16",
        f"{CALLS}/2/args/10/var",
        "program step, var z",
        ("/vars/z", {"max": 256}),
        (f"{CALLS}/2/args/10", {"var": "z"}),
    ),
    row("Z17", f"{CALLS}/2/args/11/expr", "program step", (f"{CALLS}/2/args/11", {"expr": "n"})),
    row(
        "Z18",
        f"{CALLS}/2/args/9/expr",
        "program step",
        (f"{CALLS}/2/args/9/expr/mul/1", 2**60),
    ),
    row("Z19", f"{CALLS}/2/args/10", "program step", (f"{CALLS}/2/args/10", {"i32": 1})),
    row(
        "U1",
        "/buffers/z",
        "buffer z",
        ("/buffers/z", {"dtype": "bf16", "shape": [1], "kind": "carry"}),
        (f"{CALLS}/2/args/2/buf", "z"),
    ),
    row("U2", "/vars/z", "var z", ("/vars/z", {"max": 1})),
    row(
        "X17",
        "/programs/start/calls/0/args/0",
        "program start, buffer mail_at, op send",
        ("/ops/send/impl/launches/-", {"entry": "extern:any", "params": [], "args": []}),
    ),
)
BREAKS = TOP + STATES + BUFFERS + BIND + OPS + ARGUMENTS + PROGRAMS


@pytest.mark.parametrize("case", BREAKS, ids=lambda case: case.rule)
def test_a_broken_rule_is_named_with_its_place_and_objects(case: Break) -> None:
    faults = check(parse(broken(*case.changes)))
    own = next(fault for fault in faults if fault.rule == case.rule)
    assert own.path == case.path
    assert ", ".join(own.objects) == case.objects
    assert sorted(fault.rule for fault in faults) == sorted([case.rule, *case.also.split()])


def test_every_rule_is_broken_by_some_case() -> None:
    assert sorted({case.rule for case in BREAKS}) == sorted(rule.id for rule in RULES)


def test_every_rule_says_what_it_requires() -> None:
    assert [rule.id for rule in RULES if not rule.requires.endswith(".")] == []


def test_the_tiny_manifest_keeps_every_rule() -> None:
    assert check(parse(broken())) == []
