"""Schedules to manifests: accepted, complete, repeatable."""

from collections import defaultdict
from dataclasses import replace

import pytest

from bedstone.build.emit import PAGE, Emission, Forms, Naming, emit
from bedstone.checkpoint.config import ModelConfig, RopeConfig
from bedstone.errors import CallerError
from bedstone.lane.cpu import CpuShim
from bedstone.lane.plan import RULES, plan
from bedstone.library.catalog import cpu_kernels
from bedstone.library.kernel import KernelSet
from bedstone.models import step_graph
from bedstone.spec.codec import parse, serialize
from bedstone.spec.manifest import BufArg, Manifest, Module, Segment
from bedstone.verify import check, verify
from bedstone.verify.protocol import protocol

LLAMA = ModelConfig(
    architecture="LlamaForCausalLM",
    name="tiny",
    vocab=96,
    hidden=64,
    layers=2,
    heads=4,
    kv_heads=2,
    head_dim=16,
    intermediate=96,
    context=80,
    norm_eps=1e-6,
    rope=RopeConfig("neox", 16, 1e4, "default", tuple(10.0**-i for i in range(8))),
    activation="silu",
    tie_embeddings=False,
    attention_bias=True,
    attention_out_bias=False,
    mlp_bias=False,
    qk_norm=False,
    attention_scale=0.25,
    sliding_window=None,
    bos=None,
    eos=(),
)
QWEN3 = replace(LLAMA, architecture="Qwen3ForCausalLM", qk_norm=True, tie_embeddings=True)
KERNELS = cpu_kernels()


class Formats(defaultdict):
    """Matrices in one format, vectors in another."""

    def __init__(self, matrix: str, vector: str) -> None:
        super().__init__()
        self.matrix, self.vector = matrix, vector

    def __missing__(self, name: str) -> str:
        return self.vector if "norm" in name or name.endswith("bias") else self.matrix


def emission(config=LLAMA, matrix="q4_0", vector="f32", numerics="quantized", held=()) -> Emission:
    formats = Formats(matrix, vector)
    forms = []
    for form in ("decode", "chunk"):
        rows = 1 if form == "decode" else 48
        graph = step_graph(
            config,
            form,
            formats=formats,
            rows=rows,
            capacity=config.context,
            row_param="tokens" if form == "chunk" else None,
        )
        forms.append(plan(graph, numerics=numerics, shim=CpuShim(KERNELS), held=held))
    own = {n: (Segment(f"own.{n}"),) for schedule in forms for n in schedule.consts}
    return emit(Forms(*forms), Naming("tiny", config.vocab, config.context, own), KERNELS)


def pinned(made: Emission) -> Manifest:
    modules = {name: Module(name, "0" * 64) for name in made.manifest.modules}
    return replace(made.manifest, modules=modules)


@pytest.mark.parametrize("numerics", ["precise", "quantized"])
@pytest.mark.parametrize("matrix", ["f32", "bf16", "q8_0", "q4_1"])
@pytest.mark.parametrize("config", [LLAMA, QWEN3], ids=["llama", "qwen3"])
def test_every_form_is_accepted(config, matrix, numerics):
    manifest = pinned(emission(config, matrix, "bf16", numerics))
    assert check(manifest) == []
    assert parse(serialize(manifest)) == manifest


@pytest.mark.parametrize("held", [*((rule,) for rule in RULES), RULES])
def test_rules_held_back_are_accepted_too(held):
    assert check(pinned(emission(QWEN3, held=held))) == []


def test_a_serving_loop_can_drive_it():
    found = protocol(verify(pinned(emission())))
    assert {shape.program: (shape.groups, shape.rows) for shape in found.shapes} == {
        "prefill": (1, None),
        "decode": (1, 1),
    }
    assert [chain.program for chain in found.chains] == ["decode_chain"]
    assert found.page_tokens == PAGE


def test_two_emissions_are_the_same_bytes():
    assert serialize(pinned(emission())) == serialize(pinned(emission()))


def test_a_program_has_a_call_for_each_launch():
    made = emission(held=("gemv_parts",))
    assert len(made.manifest.programs["decode"].calls) == 2 * 10 + 4
    assert len(made.manifest.programs["decode_chain"].calls) == 2 * 10 + 4


def test_nothing_enters_a_chain_from_the_host_but_pages():
    manifest = emission().manifest
    read = {
        arg.buf
        for call in manifest.programs["decode_chain"].calls
        for arg in call.args
        if isinstance(arg, BufArg)
    }
    assert {name for name in read if manifest.buffers[name].kind == "input"} == {"pages"}


def test_weights_are_bound_by_the_checkpoints_own_names_in_their_own_form():
    manifest = emission(matrix="q4_0").manifest
    weight = manifest.buffers["model.layers.0.mlp.gate_proj.weight"]
    assert weight.bind[0].tensor == "own.model.layers.0.mlp.gate_proj.weight"
    assert (weight.dtype, weight.shape) == ("u8", (96, 64 // 32 * 18))


def test_a_tied_head_is_the_embedding_once():
    names = emission(QWEN3).manifest.buffers
    assert "model.embed_tokens.weight" in names
    assert "lm_head.weight" not in names


def test_vectors_of_another_type_are_cast_while_weights_load():
    plain, cast = emission(vector="f32").manifest, emission(vector="bf16").manifest
    assert "derive" not in plain.programs
    name = "model.norm.weight"
    assert cast.programs["derive"].derive
    assert cast.buffers[f"raw.{name}"].kind == "source"
    assert (cast.buffers[name].kind, cast.buffers[name].dtype) == ("carry", "f32")


def test_one_kernel_at_two_sizes_is_two_ops_of_one_module():
    manifest = emission(held=RULES).manifest
    linears = [name for name in manifest.ops if name.startswith("linear_q_q4_0(rows=1,")]
    assert len(linears) == 4
    assert len({manifest.ops[name].impl.launches[0].module for name in linears}) == 1


def test_a_kernel_the_set_lacks_is_named():
    fewer = KernelSet("few", {k: v for k, v in KERNELS.kernels.items() if k != "argmax"})
    graph = step_graph(LLAMA, "decode", formats=Formats("f32", "f32"), rows=1, capacity=80)
    schedule = plan(graph, numerics="precise", shim=CpuShim(KERNELS))
    own = {name: (Segment(name),) for name in schedule.consts}
    with pytest.raises(CallerError, match="`argmax` is not in the set `few`"):
        emit(Forms(schedule, schedule), Naming("tiny", 96, 80, own), fewer)
