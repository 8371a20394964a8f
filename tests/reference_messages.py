"""The reference reader's diagnostics as faults: which rule each names, and which objects.

Each row is a rule id and the message's template; ``{kind}`` stands for a name of that kind, which
becomes one of the fault's objects, ``{launch}``, ``{call}``, ``{arg}`` and ``{field}`` for indices
that become part of its place, ``{_}`` for anything.
"""

import json
import re
from dataclasses import dataclass
from functools import cache

from bedstone.spec.fault import Fault

KINDS = ("buffer", "group", "module", "op", "program", "scratch", "state", "target", "var")
INDICES = ("launch", "call", "arg", "field")

VAR = "var `{var}`: "
STATE = "state `{state}`: "
SHARD = STATE + "shard: "
HOST = STATE + "host: "
BUFFER = "buffer `{buffer}`: "
DOMAIN = "buffer `{buffer}` domain: "
BIND = BUFFER + "bind[{_}]: "
MODULE = "module `{module}`: "
OP = "op `{op}`: "
SCRATCH = "op `{op}` scratch `{scratch}`: "
LAUNCH = "op `{op}` launch #{launch} ({_}): "
ARG = LAUNCH + "arg #{arg}: "
FIELD = ARG + "field #{field}: "
FIELD_SPAN = ARG + "field #{field} "
PROGRAM = "program `{program}`: "
CALL = "program `{program}` call #{call}{label}: "
CALL_ARG = CALL + "arg #{arg}: "

GROUP_PLACES = (SHARD, BUFFER, BIND, ARG, FIELD, CALL_ARG)
EXPR_PLACES = (DOMAIN + "`{_}`: ", LAUNCH + "grid.{_}: ", LAUNCH + "shared_mem: ", FIELD, CALL_ARG)
SHAPE_PLACES = (BUFFER, SCRATCH)

ROWS: tuple[tuple[str, str], ...] = (
    ("F1", "unsupported schema_version {_} (this runtime reads 7)"),
    ("V1", VAR + "max must be >= 1"),
    ("V2", "vars {vars} all count the `{_}` axis; one var does"),
    (
        "V3",
        VAR + "`axis: ranks` counts every member's rows with this rank's first, but state "
        "`{state}` deals positions over `{group}`, so the group runs one replicated batch; every "
        "member takes the same rows",
    ),
    ("T1", "topology group `{group}`: size must be > 0"),
    ("T2", "topology group `{group}` is never used (no peer buffer or rank arg names it)"),
    *(("T3", place + "unknown topology group `{group}`") for place in GROUP_PLACES),
    *(
        ("T4", place + "group `{group}` but the manifest declares no topology")
        for place in GROUP_PLACES
    ),
    (
        "K1",
        "cut: stage {_} of {_} with id `{_}`; a cut has at least 2 stages, a stage below their "
        "count and an id",
    ),
    ("S1", STATE + "one of bytes_per_token / bytes / bytes_per_seq / host must be set"),
    ("S2", STATE + "bytes_per_token, bytes and bytes_per_seq are exclusive"),
    (
        "S3",
        STATE + "a host state is sized by the host; bytes_per_token / bytes / bytes_per_seq must "
        "be absent",
    ),
    ("S4", HOST + "{_} extents and {_} strides; want as many of each, at least one"),
    ("S5", HOST + "shape {_}: only the outermost extent may be 0 (the host's count)"),
    ("S6", HOST + "strides {_}: a zero stride aliases elements"),
    ("S7", HOST + "shape {_} with strides {_} overflows 64 bits"),
    ("S9", SHARD + "`by: position` deals a paged state, got a {_} one"),
    (
        "S10",
        STATE + "not dealt by position, but `{state}` is dealt over `{group}`; the paged states "
        "share one page id space, so every one is dealt the same way",
    ),
    (
        "S11",
        STATE + "shard deals positions over `{group}`, but `{state}` deals them over `{group}`; "
        "the paged states share one page id space, so one group deals them all",
    ),
    ("S12", SHARD + "`by: heads` splits a per-sequence state, got a {_} one"),
    ("S13", SHARD + "`by: heads` needs at least one segment"),
    ("S14", SHARD + "segment #{_} is {_} rows of {_} bytes, expected neither 0"),
    (
        "S15",
        SHARD + "segment #{_} rows are {_} bytes, expected a multiple of the {_} members of "
        "`{group}`",
    ),
    (
        "S16",
        SHARD + "segments span {_} bytes, expected the {_} members of `{group}` times "
        "bytes_per_seq {_} = {_}",
    ),
    ("S17", "state `{state}` is never used by any program"),
    *(("B1", place + "shape must not be empty") for place in SHAPE_PLACES),
    *(("B2", place + "zero-sized dimension") for place in SHAPE_PLACES),
    *(("B3", place + "unknown var `{var}` in shape") for place in SHAPE_PLACES),
    *(("B4", place + "byte size overflows u64 at var upper bounds") for place in SHAPE_PLACES),
    ("B5", "buffer `{buffer}` is never used by any program"),
    ("D1", DOMAIN + "`index_into` and `min`/`max` are mutually exclusive"),
    ("D2", DOMAIN + "empty (declare bounds, `index_into`, or `monotone`)"),
    ("D3", DOMAIN + "`stride` must be > 0"),
    ("D4", DOMAIN + "`stride` only applies with `index_into`"),
    ("D5", DOMAIN + "a {_} buffer cannot index anything"),
    ("D6", DOMAIN + "`index_into` unknown buffer/state `{target}`"),
    ("D7", DOMAIN + "`index_into` `{both}` is both a buffer and a state"),
    ("D8", DOMAIN + "a buffer cannot index itself"),
    (
        "D9",
        DOMAIN + "`index_into` per-sequence state `{state}` in lines of {_} bytes, which do not "
        "divide its {_} bytes per sequence",
    ),
    ("D10", DOMAIN + "`monotone` requires a one-dimensional buffer"),
    ("D11", DOMAIN + "float `{_}` on a {_} buffer"),
    ("D13", DOMAIN + "min {_} > max {_}"),
    *(("E1", place + "unknown var `{var}`") for place in EXPR_PLACES[:3]),
    *(("E2", place + "division by zero") for place in EXPR_PLACES),
    *(("E3", place + "multiplication by constant zero") for place in EXPR_PLACES),
    ("L1", BUFFER + "fill `{_}` is read from an output but the buffer is input"),
    ("L1", BUFFER + "fill `{_}` is written into an input but the buffer is output"),
    ("L2", BUFFER + "a fill sits on an input or output, not a {_} buffer"),
    ("L3", BUFFER + "fill `{_}` needs an i32 or i64 buffer, not {_}"),
    (
        "L4",
        BUFFER + "fill `blocks` splits the group's batch into members' blocks, but state "
        "`{state}` deals positions over `{group}`, so the group runs one replicated batch",
    ),
    ("H1", BUFFER + "host placement requires a non-exported immutable weight"),
    ("H2", BUFFER + "shared host weights cannot select tensors, rows or columns by rank"),
    ("N1", BUFFER + "a {_} buffer binds at least one checkpoint tensor (`bind`)"),
    (
        "N2",
        BUFFER + "`bind` names checkpoint tensors for a weight or a source, not a {_} buffer",
    ),
    ("N3", BIND + "empty tensor name"),
    ("N4", BIND + "group `{group}` needs {_} tensor names, got {_}"),
    ("N5", BIND + "group `{group}` needs {_} row ranges, got {_}"),
    ("N5", BIND + "group `{group}` needs {_} column ranges, got {_}"),
    ("N6", BIND + "rows [{_}, {_}) is empty"),
    ("N6", BIND + "cols [{_}, {_}) is empty"),
    ("N7", BIND + "interleave blocks of 0 rows"),
    ("N8", BIND + "an interleaved segment takes both tensors whole, not a range"),
    ("X1", BUFFER + "a peer buffer cannot itself be exported"),
    ("X2", BUFFER + "a peer buffer holds device addresses, dtype must be u64, not {_}"),
    (
        "X3",
        BUFFER + "a peer buffer's contents are runtime-filled addresses; it takes no domain",
    ),
    (
        "X4",
        BUFFER + "a peer buffer must name the exported buffer or state it holds addresses `of`",
    ),
    ("X5", BUFFER + "a peer buffer cannot be `of` itself"),
    ("X6", BUFFER + "`of` `{both}` is both a buffer and a state"),
    ("X7", BUFFER + "`of` `{buffer}` is itself a peer buffer"),
    ("X8", BUFFER + "`of` buffer `{buffer}` is not exported"),
    ("X9", BUFFER + "`of` state `{state}` is the host's; only runtime memory is exported"),
    ("X10", BUFFER + "`of` unknown buffer/state `{target}`"),
    (
        "X11",
        BUFFER + "a peer buffer must name the topology `group` its addresses are indexed by",
    ),
    (
        "X12",
        BUFFER + "a peer buffer over group `{group}` has shape [{_}], one address per member",
    ),
    ("X13", BUFFER + "`of` only applies to peer buffers"),
    ("X14", BUFFER + "`group` only applies to peer buffers"),
    ("X15", BUFFER + "a source lives only while weights load; it cannot be exported"),
    (
        "X17",
        CALL_ARG + "peer buffer `{buffer}` passed to op `{op}`, which has an extern launch; "
        "runtime built-ins never receive peer memory",
    ),
    ("M1", MODULE + "sha256 `{_}` is not 64 hex chars"),
    ("M2", MODULE + "empty source"),
    (
        "M3",
        MODULE + "invalid registry ref `{_}`: expected hf:<org>/<repo>/<path>[@revision]",
    ),
    ("M4", MODULE + "invalid registry ref `{_}`: expected https://<host>/<path>"),
    ("M5", MODULE + "invalid registry ref `{_}`: only https:// and hf: sources are fetched"),
    ("M7", "module `{module}` is never launched"),
    (
        "O1",
        OP + "interface param #{_} is a byte aggregate; packs are launch-private, the interface "
        "takes the buffers and scalars they are assembled from",
    ),
    ("O3", OP + "implementation has no launches"),
    ("O4", OP + "interface `{_}` param #{_} is never written by any launch"),
    ("O5", OP + "scratch `{scratch}` is never used"),
    ("O6", "op `{op}` is never called"),
    ("W1", LAUNCH + "when: unknown var `{var}`"),
    ("W2", LAUNCH + "when: `{var}` range [{_}, {_}] is empty"),
    ("W5", LAUNCH + "`algo` pins a cublaslt_bf16_tn[_acc] launch, not `{_}`"),
    ("G1", LAUNCH + "empty entry"),
    ("G2", LAUNCH + "an extern entry has no module or launch geometry"),
    ("G3", LAUNCH + "a launch without a module must be a runtime built-in (`extern:<name>`)"),
    ("G4", LAUNCH + "unknown module `{module}`"),
    ("G5", LAUNCH + "block {_} exceeds 1024 threads or has a zero dim"),
    ("G6", LAUNCH + "block.z {_} > 64"),
    ("G7", LAUNCH + "grid.{_}: {_} exceeds CUDA limit {_} at var upper bounds"),
    ("G8", LAUNCH + "grid.{_}: evaluates to 0 at var lower bounds"),
    ("G9", LAUNCH + "grid.{_}: arithmetic overflow"),
    (
        "G10",
        LAUNCH + "shared_mem: {_} bytes exceeds opt-in limit 232448 at var upper bounds",
    ),
    ("G11", LAUNCH + "cluster {_} has a zero dim or more than 16 blocks"),
    ("G12", LAUNCH + "grid.{_} = {_} at var {_} bounds is not a multiple of cluster.{_} = {_}"),
    ("A1", LAUNCH + "takes {_} params, got {_} args"),
    ("A2", ARG + "interface param #{_} out of range ({_} interface params)"),
    ("A3", ARG + "interface param `{_}` does not match launch param `{_}`"),
    ("A4", ARG + "launch writes through interface `in` param #{_}"),
    ("A5", ARG + "interface `out` param #{_} read before any launch wrote it"),
    ("A6", ARG + "unknown scratch `{scratch}`"),
    ("A7", ARG + "scratch `{scratch}` bound to non-buffer param `{_}`"),
    ("A8", ARG + "scratch `{scratch}` has dtype {_} but param expects {_}"),
    ("A9", ARG + "scratch `{scratch}` is read before any launch wrote it"),
    ("A10", ARG + "{_} literal {_} does not match launch param `{_}`"),
    ("A11", ARG + "a rank binds only to an i32 or i64 param, not `{_}`"),
    ("A12", LAUNCH + "an extern launch takes pointers and scalars, not a pack"),
    ("Q1", ARG + "pack of {_} bytes bound to a `bytes<{_}>` param"),
    ("Q2", ARG + "a pack binds only to a `bytes<n>` param, not `{_}`"),
    ("Q3", FIELD_SPAN + "at {_} spans {_} bytes, past the {_} byte image"),
    ("Q4", FIELD_SPAN + "overlaps field #{_}"),
    ("Q5", FIELD + "width unknown"),
    ("Q6", FIELD + "interface param #{_} out of range ({_} interface params)"),
    ("Q7", FIELD + "unknown scratch `{scratch}`"),
    ("Q8/E1", FIELD + "unknown var `{var}`"),
    ("R1", FIELD + "a tensormap field is 128 bytes, not {_}"),
    ("R2", FIELD + "tensormap at {_} is not 64-byte aligned"),
    ("R3", FIELD + "dims has {_} entries, expected 1 to 5"),
    ("R4", FIELD + "strides has {_} entries, expected dims - 1 = {_}"),
    ("R5", FIELD + "box has {_} entries, expected {_}"),
    ("R6", FIELD + "dims[{_}] is 0; only the outermost dim may span the buffer"),
    ("R6", FIELD + "dims[0] is 0"),
    ("R7", FIELD + "box[{_}] = {_}, must be 1..=256"),
    ("R8", FIELD + "strides[{_}] = {_} is not a positive multiple of 16"),
    ("R9", FIELD + "dims[0] = {_} elements is not a multiple of 16 bytes"),
    ("R10", FIELD + "box[0] = {_} elements spans {_} bytes, not a multiple of 16"),
    ("R11", FIELD + "box[0] spans {_} bytes, more than the {_} byte swizzle span"),
    ("R12", FIELD + "swizzle {_} is not one of 0, 32, 64, 128"),
    ("R13", FIELD + "l2_promotion {_} is not one of 0, 64, 128, 256"),
    (
        "R14",
        FIELD + "tensormap over interface param #{_} (`{_}`), which is not a buffer or state",
    ),
    ("R15", FIELD + "`wrap` on a tensormap whose strides do not overflow"),
    (
        "R15",
        FIELD + "the tensormap's strides overflow (declare `wrap` if that is the kernel's trick)",
    ),
    (
        "R16",
        CALL_ARG + "op `{op}` launch #{_} ({_}): arg #{_}: field #{_} addresses {_} bytes but "
        "buffer `{buffer}` has {_} bytes past offset {_} at var upper bounds",
    ),
    ("Y1", "no programs declared"),
    (
        "Y2",
        PROGRAM + "`once` (run after load) and `batch` (driven per step) are exclusive",
    ),
    (
        "Y3",
        PROGRAM + "`derive` (run inside weight loading) excludes `once`, `batch` and `graph`",
    ),
    (
        "Y4",
        PROGRAM + "`graph` (captured per call shape) needs a `batch` (a program a serving loop "
        "drives)",
    ),
    ("Y5", PROGRAM + "batch.groups must be >= 1"),
    ("Y6", PROGRAM + "batch.rows must be >= 1"),
    ("Y7", PROGRAM + "batch.rows names unknown var `{var}`"),
    ("Y8", PROGRAM + "batch.context names unknown var `{var}`"),
    ("Z1", CALL + "unknown op `{op}`"),
    ("Z2", CALL + "op `{op}` takes {_} params, got {_} args"),
    ("Z3", CALL_ARG + "unknown buffer `{buffer}`"),
    ("Z4", CALL_ARG + "buffer `{buffer}` has dtype {_} but param expects {_}"),
    ("Z5", CALL_ARG + "offset {_} into buffer `{buffer}` is not {_}-aligned for {_}"),
    ("Z6", CALL_ARG + "offset {_} is outside buffer `{buffer}` ({_} bytes at var upper bounds)"),
    ("Z7", CALL_ARG + "buffer `{buffer}` is read before ever being written"),
    ("Z8", CALL_ARG + "op writes to read-only {_} buffer `{buffer}`"),
    (
        "Z9",
        CALL_ARG + "source buffer `{buffer}` is read only by a `derive` program; it is gone "
        "after load",
    ),
    (
        "Z10",
        CALL_ARG + "a `derive` program runs inside weight loading, before any {_} buffer such as "
        "`{buffer}` means anything",
    ),
    (
        "Z11",
        CALL_ARG + "a `derive` program runs inside weight loading, before state `{state}` holds "
        "anything",
    ),
    (
        "Z12",
        CALL + "a `derive` program runs before any group is joined; op `{op}` is a collective",
    ),
    ("Z13", CALL_ARG + "unknown state `{state}`"),
    ("Z14/E1", CALL_ARG + "unknown var `{var}`"),
    ("Z15", CALL_ARG + "var `{var}` cannot bind to an f32 param"),
    ("Z16", CALL_ARG + "var `{var}` max {_} exceeds {_} range"),
    ("Z17", CALL_ARG + "an expression cannot bind to an f32 param"),
    ("Z18", CALL_ARG + "expression reaches {_} at var upper bounds, exceeding {_} range"),
    ("Z19", CALL_ARG + "{_} literal {_} does not match param `{_}`"),
    ("Z19", CALL_ARG + "buffer `{buffer}`{offset} does not match param `{_}`"),
    ("Z19", CALL_ARG + "state `{state}`{offset} does not match param `{_}`"),
    ("Z19", CALL_ARG + "var `{var}` does not match param `{_}`"),
    ("Z19", CALL_ARG + "expression does not match param `{_}`"),
    ("Z19", CALL_ARG + "rank in group `{group}` does not match param `{_}`"),
    ("U1", "{_} buffer `{buffer}` is never written by any program"),
    ("U2", "var `{var}` is never used"),
)


@dataclass(frozen=True, slots=True)
class Said:
    """One diagnostic of the reference: the rules it can stand for, the objects, the place."""

    rules: tuple[str, ...]
    objects: frozenset[str]
    place: str

    def matches(self, fault: Fault) -> bool:
        """Whether a fault of ours says the same of the same objects at the same place."""
        return (
            fault.rule in self.rules
            and frozenset(fault.objects) == self.objects
            and (fault.path.startswith(self.place) or self.place.startswith(fault.path))
        )


def said(message: str) -> Said:
    """A diagnostic of the reference's verifier as rule, objects and place.

    Raises:
        LookupError: no row has the message.
    """
    for rules, pattern, kinds in _patterns():
        match = pattern.fullmatch(message)
        if match:
            parts = list(zip(kinds, match.groups(), strict=True))
            return Said(tuple(rules.split("/")), _objects(parts), _place(parts))
    raise LookupError(message)


def _objects(parts: list[tuple[str, str]]) -> frozenset[str]:
    found = set()
    for kind, name in parts:
        match kind:
            case "vars":
                found |= {f"var {var}" for var in json.loads(name)}
            case "both":
                found |= {f"buffer {name}", f"state {name}"}
            case _ if kind in KINDS:
                found.add(f"{kind} {name}")
    return frozenset(found)


def _place(parts: list[tuple[str, str]]) -> str:
    """The pointer the message's own context spells, as far as it goes."""
    first = dict(reversed(parts))
    if "launch" in first:
        place = f"/ops/{first['op']}/impl/launches/{first['launch']}"
        place += f"/args/{first['arg']}" if "arg" in first else ""
        return place + (f"/pack/fields/{first['field']}" if "field" in first else "")
    if "call" in first:
        place = f"/programs/{first['program']}/calls/{first['call']}"
        return place + (f"/args/{first['arg']}" if "arg" in first else "")
    return ""


@cache
def _patterns() -> list[tuple[str, re.Pattern[str], list[str]]]:
    return [(rules, *_compiled(template)) for rules, template in ROWS]


def _compiled(template: str) -> tuple[re.Pattern[str], list[str]]:
    pattern, kinds = "", []
    for index, piece in enumerate(re.split(r"\{(\w+)\}", template)):
        if index % 2 == 0:
            pattern += re.escape(piece)
        elif piece == "_":
            pattern += ".*?"
        elif piece == "label":
            pattern += r"(?: \(.*?\))?"
        elif piece == "offset":
            pattern += r"(?:\+\d+)?"
        else:
            pattern += r"(\d+)" if piece in INDICES else "(.*?)"
            kinds.append(piece)
    return re.compile(pattern, re.DOTALL), kinds
