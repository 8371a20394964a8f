"""What `bedstone plan` says is what the runtime launches."""

import json

import pytest

from bedstone.runtime.load import load, read_parts
from bedstone.runtime.null import NullDevice
from bedstone.spec.package import PLAN
from checkpoint_files import write_hollow_gguf
from command_line import bedstone
from letters import GGUF_LETTERS
from packages import compiled
from smollm2 import REFERENCE
from tiny_models import FAMILIES

PROGRAMS = {"decode": "decode", "chunk": "prefill", "batch": "decode_many"}
"""The program that runs each form."""

SHAPES = {
    "qwen3": {
        "block_count": 36, "context_length": 4096, "embedding_length": 2560,
        "feed_forward_length": 9728, "attention.head_count": 32, "attention.head_count_kv": 8,
        "attention.key_length": 128, "attention.value_length": 128,
        "attention.layer_norm_rms_epsilon": 1e-6, "rope.freq_base": 1e6,
    },
    "llama": {
        "block_count": 16, "context_length": 4096, "embedding_length": 2048,
        "feed_forward_length": 8192, "attention.head_count": 32, "attention.head_count_kv": 8,
        "attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 5e5,
    },
}  # fmt: skip
"""Qwen3-4B and Llama-3.2-1B, but for their tokens: how many there are decides no launch."""


@pytest.fixture
def launched(monkeypatch):
    """How many launches each replay has made, the latest last."""
    counts = []
    replay = NullDevice.replay

    def counting(self, capture, repeat, taps):
        counts.append(capture.count)
        return replay(self, capture, repeat, taps)

    monkeypatch.setattr(NullDevice, "replay", counting)
    return counts


def in_stages(package, form):
    """The launches of a program beyond one a call: some kernels take several, in pieces."""
    manifest = read_parts(package.path).manifest
    calls = manifest.programs[PROGRAMS[form]].calls
    return sum(len(manifest.ops[call.op].impl.launches) - 1 for call in calls)


def planned(checkpoint, form, *options):
    command = ("plan", checkpoint, "--form", form, "--bandwidth", "1", "--json")
    ended = bedstone(*command, *options)
    assert ended.code == 0, ended.err
    return json.loads(ended.out)[form]


def run(package, form, sequences=1):
    """Run one form's program once, on a device that only looks at its launches."""
    with load(package.path, device="null", tokens=4096, sequences=sequences) as session:
        program = PROGRAMS[form]
        given = {"tokens": 3, "length": 3, "seqs": sequences}
        session.run(program, **{name: given[name] for name in session.reads(program)})


@pytest.mark.parametrize("form", ["decode", "chunk"])
def test_a_step_launches_as_often_as_planned(tiny, launched, form):
    plan = planned(tiny.checkpoint, form, "--numerics", "precise")
    run(tiny.package, form)
    assert launched[-1] == plan["launches"] == sum(plan["census"].values())


@pytest.mark.parametrize("tiny", FAMILIES, indirect=True)
@pytest.mark.parametrize("many", [3, 9])
def test_a_batch_launches_as_often_as_planned(tiny, launched, cache, tmp_path, many):
    package = compiled(str(tiny.checkpoint), tmp_path / "batch", cache, sequences=many)
    plan = planned(tiny.checkpoint, "batch", "--sequences", many)
    assert plan["rows"] == many
    run(package, "batch", many)
    assert launched[-1] == plan["launches"] == sum(plan["census"].values())
    report = json.loads((package.path / PLAN).read_text())
    assert {form: report[form]["launches"] for form in PROGRAMS} == {
        form: planned(tiny.checkpoint, form, "--sequences", many)["launches"] for form in PROGRAMS
    }


@pytest.fixture(scope="module", params=SHAPES)
def hollow(request, tmp_path_factory, cache):
    """A checkpoint of a known model's shape, and its package."""
    arch, folder = request.param, tmp_path_factory.mktemp(request.param)
    sizes = SHAPES[arch] | {"vocab_size": len(GGUF_LETTERS["tokenizer.ggml.tokens"])}
    fields = {f"{arch}.{name}": value for name, value in sizes.items()} | GGUF_LETTERS
    path = write_hollow_gguf(folder / "hollow.gguf", fields, "q4_0", arch)
    return path, compiled(str(path), folder / "package", cache, context=4096, sequences=8)


LAUNCHES = {"qwen3": ("qwen3-4b", 292), "llama": ("llama-3.2-1b", 132)}
"""Eight launches a layer and four, of 36 layers and of 16."""


@pytest.mark.slow
@pytest.mark.parametrize("form", PROGRAMS)
def test_a_known_model_launches_as_often_as_its_shape_is_planned(hollow, launched, form):
    path, package = hollow
    run(package, form, 8)
    name, most = LAUNCHES[package.path.parent.name[:-1]]
    shape = ("plan", "--config", name, "--format", "q4_0", "--context", 4096, "--form", form)
    of_shape = json.loads(bedstone(*shape, "--bandwidth", "1", "--json").out)[form]
    of_file = planned(path, form)
    for counted in ("launches", "per_layer", "census", "fusions"):
        assert of_shape[counted] == of_file[counted], counted
    assert launched[-1] == of_shape["launches"] + in_stages(package, form)
    if form != "chunk":
        assert of_shape["launches"] <= most
        assert in_stages(package, form) == of_shape["census"]["attention"]


@pytest.mark.slow
def test_a_real_model_launches_as_often_as_planned(launched, cache, tmp_path):
    package = compiled(REFERENCE, tmp_path / "package", cache, sequences=16)
    for form in PROGRAMS:
        run(package, form, 16)
        plan = planned(REFERENCE, form, "--sequences", 16)
        assert launched[-1] == plan["launches"] + in_stages(package, form), form
