"""Bad input to `bedstone run`: one clear line, exit 2, nothing written."""

import json
import shutil
from pathlib import Path

import pytest

from bedstone.checkpoint.reference import resolve
from bedstone.spec.package import KERNELS
from e2e_cli import run_cli
from letters import write_tokenizer
from smollm2 import REFERENCE
from tiny_models import write_tiny


@pytest.fixture
def checkpoint(tmp_path) -> Path:
    """A small sharded checkpoint to break."""
    folder = tmp_path / "checkpoint"
    write_tiny("llama", folder, max_shard_size="20KB")
    write_tokenizer(folder)
    assert len(list(folder.glob("*.safetensors"))) > 1
    return folder


def refused(checkpoint: Path | str, cache: Path, *words: str, prompt: str = "ab") -> None:
    ended = run_cli(["run", str(checkpoint), "--prompt", prompt], cache)
    ended.require_one_line(*words)
    assert not (cache / "packages").exists()


def edited(checkpoint: Path, **changes: object) -> Path:
    path = checkpoint / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return checkpoint


def test_a_truncated_gguf(tmp_path, own_cache):
    path = tmp_path / "cut.gguf"
    with resolve(REFERENCE).open("rb") as whole:
        path.write_bytes(whole.read(3_000_000))
    refused(path, own_cache, "cut.gguf")


def test_a_missing_shard(checkpoint, own_cache):
    shard = sorted(checkpoint.glob("*.safetensors"))[1]
    shard.unlink()
    refused(checkpoint, own_cache, shard.name)


def test_a_wrong_dtype(checkpoint, own_cache):
    for path in checkpoint.glob("*.safetensors"):
        path.write_bytes(path.read_bytes().replace(b'"F32"', b'"F64"'))
    refused(checkpoint, own_cache, "F64")


def test_an_unknown_architecture(checkpoint, own_cache):
    refused(edited(checkpoint, architectures=["MartianForCausalLM"]), own_cache, "Martian")


def test_a_config_field_that_changes_the_result(checkpoint, own_cache):
    refused(edited(checkpoint, attention_temperature=2.0), own_cache, "`attention_temp")


def test_a_checkpoint_that_is_not_there(tmp_path, own_cache):
    refused(tmp_path / "nowhere", own_cache, "nowhere")


def test_a_package_that_is_not_installed(own_cache):
    refused("pkg:nowhere_at_all/model.gguf", own_cache, "`nowhere_at_all`")


def test_a_prompt_longer_than_the_context(checkpoint, own_cache):
    prompt = "b" * 65
    run_cli(["run", str(checkpoint), "--prompt", prompt], own_cache).require_one_line("65", "64")


def test_a_kernel_with_one_byte_flipped(checkpoint, tmp_path, own_cache):
    out = tmp_path / "package"
    assert run_cli(["compile", str(checkpoint), "-o", str(out)], own_cache).code == 0
    kernel = sorted((out / KERNELS).iterdir())[0]
    data = bytearray(kernel.read_bytes())
    data[len(data) // 2] ^= 1
    kernel.write_bytes(data)
    ended = run_cli(["run", str(out), "--prompt", "b"], own_cache)
    ended.require_one_line(kernel.name.rpartition("-")[0], "sha256")


def test_a_directory_of_something_else_is_left_alone(checkpoint, tmp_path, own_cache):
    out = tmp_path / "mine"
    out.mkdir()
    (out / "notes.txt").write_text("keep")
    ended = run_cli(["compile", str(checkpoint), "-o", str(out)], own_cache)
    ended.require_one_line("mine")
    assert [path.name for path in out.iterdir()] == ["notes.txt"]


def test_a_package_is_what_it_was_compiled_as(checkpoint, tmp_path, own_cache):
    out = tmp_path / "package"
    assert (
        run_cli(["compile", str(checkpoint), "-o", str(out), "--context", "40"], own_cache).code
        == 0
    )
    for option, value, made in (
        ("--numerics", "precise", "quantized"),
        ("--context", "41", "40"),
        ("--target", "cpu-none", "cpu-"),
    ):
        ended = run_cli(["run", str(out), "--prompt", "b", option, value], own_cache)
        ended.require_one_line(option, f"`{value}`", made, str(checkpoint))
    same = ["--numerics", "quantized", "--context", "40"]
    assert (
        run_cli(["run", str(out), "--prompt", "b", "--max-tokens", "1", *same], own_cache).code == 0
    )


def test_a_chat_without_a_template(checkpoint, own_cache):
    ended = run_cli(["run", str(checkpoint), "--chat", "--prompt", "b"], own_cache)
    ended.require_one_line("--raw")


def test_a_package_is_run_where_its_checkpoint_is_now(checkpoint, tmp_path, cache):
    out, moved = tmp_path / "package", tmp_path / "elsewhere" / "moved"
    assert run_cli(["compile", str(checkpoint), "-o", str(out)], cache).code == 0
    moved.parent.mkdir()
    shutil.move(checkpoint, moved)
    run = ["run", str(out), "--prompt", "b", "--max-tokens", "1"]
    run_cli(run, cache).require_one_line(str(checkpoint), "does not exist", "`--checkpoint`")
    assert run_cli([*run, "--checkpoint", str(moved)], cache).code == 0
    run_cli([*run, "--checkpoint", "nowhere"], cache).require_one_line("`nowhere`")
    of_none = ["run", str(moved), "--prompt", "b", "--checkpoint", str(moved)]
    run_cli(of_none, cache).require_one_line("`--checkpoint` is of a package", str(moved))


def test_a_package_whose_checkpoint_was_changed(checkpoint, tmp_path, own_cache):
    out = tmp_path / "package"
    assert run_cli(["compile", str(checkpoint), "-o", str(out)], own_cache).code == 0
    shutil.rmtree(checkpoint)
    write_tiny("llama-tied", checkpoint)
    write_tokenizer(checkpoint)
    run_cli(["run", str(out), "--prompt", "b"], own_cache).require_one_line("identity")
