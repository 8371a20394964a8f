"""What a user is told of the record that serves a package."""

from types import SimpleNamespace

import msgspec
import pytest

from bedstone.cli.served import borrowed_note, read_target, tell_notes
from bedstone.errors import ManifestError
from bedstone.spec.package import TARGET, Target, emit_json
from bedstone.spec.target import Policy

OWN = Target("cpu-generic", "generic", (), "smollm2", None, False, "0" * 64, {}, {}, Policy())


def test_a_target_is_read_back_as_it_was_written(tmp_path):
    (tmp_path / TARGET).write_bytes(emit_json(OWN))
    assert read_target(tmp_path) == OWN


def test_only_a_borrowed_record_is_worth_a_note():
    assert borrowed_note(OWN) is None
    note = borrowed_note(msgspec.structs.replace(OWN, borrowed=True)) or ""
    assert "no match name of record `smollm2`" in note


def test_notes_of_the_checkpoint_and_of_the_package_are_told(tmp_path, capsys):
    (tmp_path / TARGET).write_bytes(emit_json(msgspec.structs.replace(OWN, borrowed=True)))
    opened = SimpleNamespace(notes=("no part of the model reads `a\x1b[2J`",))
    tell_notes(opened, SimpleNamespace(path=tmp_path, lock=SimpleNamespace(bedstone="0.0.1")))
    own, built, borrowed = capsys.readouterr().err.splitlines()
    assert own == "note: no part of the model reads `a\\x1b[2J`"
    assert "0.0.1" in built
    assert "no match name of record `smollm2`" in borrowed


@pytest.mark.parametrize("text", ["", "{}", '{"hardware": 1}'])
def test_other_text_is_no_target(tmp_path, text):
    (tmp_path / TARGET).write_text(text)
    with pytest.raises(ManifestError, match=r"target\.json` is no package target"):
        read_target(tmp_path)
