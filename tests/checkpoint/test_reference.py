"""A reference finds a directory, a file, or a file inside an installed package."""

import json
import os
import subprocess
import sys
import types

import pytest

from bedstone.checkpoint.reference import open_checkpoint, resolve
from bedstone.errors import BedstoneError, CallerError, WeightError
from checkpoint_files import LLAMA, write_directory, write_gguf
from letters import write_tokenizer


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package that must not be imported, with a model inside."""
    folder = tmp_path / "bedstone_test_weights"
    (folder / "deep").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise AssertionError('imported')")
    write_gguf(folder / "deep" / "m.gguf")
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def test_a_file_in_a_package_is_found_without_importing_it(package):
    reference = "pkg:bedstone_test_weights/deep/m.gguf"
    assert resolve(reference) == package / "deep" / "m.gguf"
    assert open_checkpoint(reference).reference == reference
    assert "bedstone_test_weights" not in sys.modules


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (
            "pkg:bedstone_test_weights/x.gguf",
            "package `bedstone_test_weights` has no file `x.gguf`",
        ),
        ("pkg:bedstone_test_weights/../x", "leaves the package"),
        ("pkg:bedstone_test_weights/deep/../../x", "leaves the package"),
        ("pkg:bedstone_test_weights//etc/passwd", "expected `pkg:PACKAGE/FILE`"),
        ("pkg:bedstone_test_weights/C:/x", "leaves the package"),
        ("pkg:bedstone_test_weights", "expected `pkg:PACKAGE/FILE`"),
        ("pkg:bedstone_test_weights.deep/m.gguf", "expected `pkg:PACKAGE/FILE`"),
        ("pkg:/etc/passwd", "expected `pkg:PACKAGE/FILE`"),
        ("pkg:bedstone_absent/x.gguf", "package `bedstone_absent` is not installed"),
        ("bedstone/absent", "checkpoint `bedstone/absent` does not exist"),
        ("a\0b", "does not exist"),
        ("a" * 300, "cannot be read: File name too long"),
        ("pkg:bedstone_test_weights/" + "a" * 300, "cannot be read: File name too long"),
        ("~nobody-of-that-name/x", "Could not determine home directory"),
        ("", "checkpoint ``: expected"),
    ],
)
@pytest.mark.usefixtures("package")
def test_a_reference_to_nothing_is_refused(reference, message):
    with pytest.raises(CallerError, match=message):
        resolve(reference)


def test_a_program_that_runs_is_no_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "__main__", types.ModuleType("__main__"))
    with pytest.raises(CallerError, match="package `__main__` is not installed"):
        resolve("pkg:__main__/x")


def test_a_directory_with_one_gguf_file_is_that_file(tmp_path):
    path = write_gguf(tmp_path / "m.gguf")
    assert open_checkpoint(str(tmp_path)).path == path
    write_gguf(tmp_path / "n.gguf")
    with pytest.raises(CallerError, match=r"found `m.gguf`, `n.gguf`"):
        open_checkpoint(str(tmp_path))


def test_a_lone_weight_file_takes_the_config_beside_it(tmp_path):
    write_directory(tmp_path, LLAMA)
    path = tmp_path / "model.safetensors"
    assert open_checkpoint(str(path)).path == path


def test_a_directory_without_a_model_is_refused(tmp_path):
    with pytest.raises(CallerError, match=r"without `config.json`.*found none"):
        open_checkpoint(str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    with pytest.raises(WeightError, match=r"no `.safetensors` file"):
        open_checkpoint(str(tmp_path))


@pytest.mark.parametrize("text", ["[1]", "{", '{"a": 1, "a": 2}', "\ufeff{}"])
def test_a_faulty_config_file_is_refused(tmp_path, text):
    write_directory(tmp_path, LLAMA)
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(BedstoneError, match=r"config.json"):
        open_checkpoint(str(tmp_path))


@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
    ],
)
def test_a_pipe_among_the_files_is_refused_and_not_waited_for(tmp_path, name):
    folder = write_directory(tmp_path / "c", LLAMA)
    write_tokenizer(folder)
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with pytest.raises(WeightError, match=rf"`\S+/{name}` cannot be read: it is no regular file"):
        read_all(str(folder))


def read_all(reference):
    opened = open_checkpoint(reference)
    return opened.tokenizer, opened.chat_template


def test_opening_loads_neither_tokenizers_nor_jinja(tmp_path):
    write_directory(tmp_path, LLAMA)
    code = (
        "import sys; from bedstone.checkpoint.reference import open_checkpoint; "
        f"open_checkpoint({str(tmp_path)!r}); "
        "print(*{'tokenizers', 'jinja2', 'torch', 'gguf', 'safetensors'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
