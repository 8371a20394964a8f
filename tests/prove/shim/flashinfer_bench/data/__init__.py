# ruff: noqa: ARG002, RUF012, UP042
"""FlashInfer-Bench's records over our readers: a record checks the JSON it stands for."""

import json
from enum import Enum
from pathlib import Path

from bedstone.prove.append import append_lines, read_lines
from bedstone.prove.choose import choose
from bedstone.prove.trace_set import read_trace_set
from bedstone.spec.arguments import merge_arguments
from bedstone.spec.axes import bind, shape_of
from bedstone.spec.dialect.document import emit_line, emit_text, parse_text
from bedstone.spec.dialect.parse_definition import parse_definition
from bedstone.spec.dialect.solution import parse_solution
from bedstone.spec.dialect.trace import parse_trace, strict_numbers
from bedstone.spec.dialect.workload import parse_workload
from bedstone.spec.trace import Passed


class SupportedLanguages(str, Enum):
    PYTHON = "python"
    TRITON = "triton"
    CUDA = "cuda"
    CPP = "cpp"


class EvaluationStatus(str, Enum):
    PASSED = "PASSED"
    INCORRECT_SHAPE = "INCORRECT_SHAPE"
    INCORRECT_NUMERICAL = "INCORRECT_NUMERICAL"
    INCORRECT_DTYPE = "INCORRECT_DTYPE"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    COMPILE_ERROR = "COMPILE_ERROR"
    TIMEOUT = "TIMEOUT"


def plain(item):
    """The JSON value of a record, or of a collection of them."""
    if isinstance(item, Record):
        return {name: plain(value) for name, value in item.fields.items()}
    if isinstance(item, dict):
        return {name: plain(value) for name, value in item.items()}
    if isinstance(item, (list, tuple)):
        return [plain(value) for value in item]
    return item.value if isinstance(item, Enum) else item


class Record:
    """A record's fields as given; `around` is the whole document a part is checked in."""

    defaults = {}
    parts = {}
    prefix = ""

    def __init__(self, **fields):
        self.fields = {**self.defaults, **fields}
        found = self.read(self.around(plain(self))).findings
        wrong = [f for f in found if f.severity == "error" and f.path.startswith(self.prefix)]
        if wrong:
            raise ValueError(str(wrong[0]))

    def __getattr__(self, name):
        if name == "fields" or name not in self.fields:
            raise AttributeError(name)
        return self.fields[name]

    @staticmethod
    def around(value):
        return value

    @classmethod
    def model_validate(cls, value):
        fields = {n: cls.parts[n](v) if n in cls.parts and v is not None else v
                  for n, v in value.items()}  # fmt: skip
        for name in ("max_relative_error", "max_absolute_error"):
            if name in fields:
                fields[name] = float(fields[name])
        return cls(**fields)

    @classmethod
    def model_validate_json(cls, text):
        return cls.model_validate(parse_text(text).value)

    def model_dump(self, mode="python"):
        return plain(self)

    def model_dump_json(self, **_):
        return json.dumps(strict_numbers(plain(self)))


def each(make):
    return lambda members: {name: make(member) for name, member in members.items()}


def whole_definition(**changes):
    tensor = {"shape": [], "dtype": "float32"}
    return {"name": "d", "op_type": "op", "axes": {}, "inputs": {"x": tensor},
            "outputs": {"y": tensor}, "reference": "def run(x): ..."} | changes  # fmt: skip


class AxisVar(Record):
    defaults = {"type": "var"}
    prefix = "/axes/it"
    read = staticmethod(parse_definition)

    @staticmethod
    def around(value):
        return whole_definition(axes={"it": value})


class AxisConst(AxisVar):
    defaults = {"type": "const"}


def axis(value):
    return (AxisConst if "value" in value else AxisVar).model_validate(value)


class TensorSpec(Record):
    prefix = "/inputs/it"
    read = staticmethod(parse_definition)

    @staticmethod
    def around(value):
        shape = value["shape"]
        axes = {n: {"type": "var"} for n in shape} if isinstance(shape, list) else {}
        return whole_definition(inputs={"it": value}, axes=axes)


class Definition(Record):
    parts = {"axes": each(axis), "inputs": each(TensorSpec.model_validate),
             "outputs": each(TensorSpec.model_validate)}  # fmt: skip
    read = staticmethod(parse_definition)

    def __init__(self, **fields):
        super().__init__(**fields)
        self.own = parse_definition(plain(self)).require("definition")
        if self.own.in_place:
            raise ValueError("Input and output names must not overlap")

    @property
    def const_axes(self):
        return self.own.const_axes

    @property
    def var_axes(self):
        return self.own.var_axes

    def get_axes_values(self, shapes):
        try:
            values = bind(self.own, list(shapes))
        except Exception as error:
            raise ValueError(str(error)) from error
        return {name: values[name] for name in self.own.var_axes}

    def get_axes_values_from_inputs(self, inputs):
        return self.get_axes_values(tuple(v.shape) if hasattr(v, "shape") else None for v in inputs)

    def get_input_shapes(self, values):
        known = self.own.const_axes | values
        shapes = [shape_of(spec, known) for spec in self.own.inputs.values()]
        return [None if shape is None else list(shape) for shape in shapes]

    def merge_kwargs_to_args(self, args, kwargs):
        return merge_arguments((*self.own.inputs, *self.own.outputs), args, kwargs)


def whole_solution(**changes):
    return {"name": "s", "definition": "d", "author": "a",
            "spec": {"language": "python", "target_hardware": ["cpu"], "entry_point": "f::g"},
            "sources": [{"path": "f", "content": ""}]} | changes  # fmt: skip


class SourceFile(Record):
    prefix = "/sources/0"
    read = staticmethod(parse_solution)

    @staticmethod
    def around(value):
        return whole_solution(sources=[value])


class BuildSpec(Record):
    prefix = "/spec"
    read = staticmethod(parse_solution)

    @staticmethod
    def around(value):
        file = value["entry_point"].partition("::")[0]
        return whole_solution(spec=value, sources=[{"path": file, "content": ""}])


class Solution(Record):
    parts = {"spec": BuildSpec.model_validate,
             "sources": lambda files: [SourceFile.model_validate(f) for f in files]}  # fmt: skip
    read = staticmethod(parse_solution)

    def get_entry_source(self):
        file = parse_solution(plain(self)).value.spec.entry_file
        return next(source for source in self.sources if source.path == file)


class InputRecord(Record):
    prefix = "/inputs/it"
    read = staticmethod(parse_workload)

    @staticmethod
    def around(value):
        return {"uuid": "u", "axes": {}, "inputs": {"it": value}}


class RandomInput(InputRecord):
    defaults = {"type": "random"}


class ScalarInput(InputRecord):
    defaults = {"type": "scalar"}


class SafetensorsInput(InputRecord):
    defaults = {"type": "safetensors"}


class Workload(Record):
    read = staticmethod(parse_workload)


def whole_trace(**changes):
    passed = {"status": "PASSED", "environment": {"hardware": "cpu"}, "timestamp": "t",
              "correctness": {}, "performance": {}} | changes  # fmt: skip
    return {"definition": "d", "solution": "s", "evaluation": passed,
            "workload": {"uuid": "u", "axes": {}, "inputs": {}}}  # fmt: skip


def evaluation_part(name):
    class Part(Record):
        prefix = f"/evaluation/{name}"
        read = staticmethod(parse_trace)

        @staticmethod
        def around(value):
            return whole_trace(**{name: value})

    return Part


Correctness = evaluation_part("correctness")
Performance = evaluation_part("performance")
Environment = evaluation_part("environment")


class Evaluation(Record):
    parts = {"correctness": Correctness.model_validate, "performance": Performance.model_validate,
             "environment": Environment.model_validate}  # fmt: skip
    read = staticmethod(parse_trace)

    @staticmethod
    def around(value):
        return {**whole_trace(), "evaluation": value}


class Trace(Record):
    defaults = {"solution": None, "evaluation": None}
    parts = {"workload": Workload.model_validate, "evaluation": Evaluation.model_validate}
    read = staticmethod(parse_trace)

    def is_workload_trace(self):
        return self.solution is None and self.evaluation is None

    def is_successful(self):
        return parse_trace(plain(self)).value.passed


class TraceSet:
    """A set as we read it, asked their questions."""

    def __init__(self, found):
        self.found = found
        self.definitions, self.workloads, self.traces = (
            found.definitions, found.workloads, found.traces)  # fmt: skip

    @classmethod
    def from_path(cls, path):
        return cls(read_trace_set(Path(path)))

    def get_solution(self, name):
        every = (s for group in self.found.solutions.values() for s in group)
        return next((s for s in every if s.name == name), None)

    def get_best_trace(self, name, axes):
        traces = self.traces[name]
        device = traces[0].evaluation.environment.hardware
        of, solutions = self.definitions[name], self.found.solutions[name]
        best = choose(of, solutions, traces, axes, device).solution
        return next(trace for trace in traces if trace.solution == best.name)

    def summary(self):
        outcomes = [trace.evaluation.outcome for trace in self.found.every_trace()]
        times = [o.performance.latency_ms for o in outcomes if isinstance(o, Passed)]
        return {"total": len(outcomes), "passed": len(times), "failed": len(outcomes) - len(times),
                "min_latency_ms": min(times), "max_latency_ms": max(times),
                "avg_latency_ms": sum(times) / len(times)}  # fmt: skip


def save_json_file(record, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(emit_text(plain(record)))


def load_json_file(kind, path):
    return kind.model_validate(parse_text(path.read_bytes()).value)


def save_jsonl_file(records, path):
    append_lines(path, [emit_line(plain(record)) for record in records])


def load_jsonl_file(kind, path):
    return [kind.model_validate(parse_text(line).value) for line in read_lines(path)]
