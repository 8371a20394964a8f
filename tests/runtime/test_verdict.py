"""A verdict is kept for one text and one verifier, and believed only where nobody else can write.

A file that says "sound" lets kernels run over memory that no rule has looked at. So what is tried
here is every way in which such a file could be there without this verifier having made it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bedstone.errors import ManifestError
from bedstone.runtime import verdict
from bedstone.runtime.load import load
from bedstone.runtime.verdict import VERDICTS, recalled, verdict_key
from bedstone.spec.codec import parse, serialize
from bedstone.spec.package import KERNELS, MANIFEST
from bedstone.verify import RefusedError
from runtime_toy import toy_manifest, toy_parts

TEXT = serialize(toy_manifest("0" * 64)).encode()
RULE = (b'"bytes_per_token": 8', b'"bytes_per_token": 0')
UNSOUND = TEXT.replace(*RULE)


@pytest.fixture
def judgements(monkeypatch):
    """The models that the rules were applied to."""
    seen = []
    real = verdict.judged

    def judged(manifest):
        seen.append(manifest.model)
        return real(manifest)

    monkeypatch.setattr(verdict, "judged", judged)
    return seen


def kept(cache: Path, text: bytes = TEXT) -> Path:
    return cache / VERDICTS / verdict_key(text)


def recall(cache: Path | None, text: bytes = TEXT):
    return recalled(parse(text), text, cache)


def planted(cache: Path, text: bytes) -> Path:
    """A verdict that nobody came to, as this user could write it."""
    path = kept(cache, text)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(path.name)
    path.chmod(0o600)
    return path


def test_a_text_is_judged_once(tmp_path, judgements):
    first, second = recall(tmp_path), recall(tmp_path)
    assert len(judgements) == 1
    assert first.manifest == second.manifest == parse(TEXT)
    assert (kept(tmp_path).stat().st_mode & 0o777, kept(tmp_path).read_text()) == (
        0o600,
        verdict_key(TEXT),
    )


def test_without_a_cache_it_is_judged_each_time(judgements):
    recall(None)
    recall(None)
    assert len(judgements) == 2


def test_what_breaks_a_rule_leaves_no_verdict(tmp_path):
    for _ in range(2):
        with pytest.raises(RefusedError):
            recall(tmp_path, UNSOUND)
    assert not (tmp_path / VERDICTS).exists()


@pytest.mark.parametrize("other", [TEXT + b"\n", TEXT.replace(b"toy", b"tox")])
def test_a_text_that_differs_in_a_byte_is_judged(tmp_path, judgements, other):
    recall(tmp_path)
    recall(tmp_path, other)
    assert len(judgements) == 2


def test_another_verifier_judges_for_itself(tmp_path, judgements, monkeypatch):
    recall(tmp_path)
    copy = tmp_path / "verify"
    shutil.copytree(Path(verdict.bedstone.verify.__path__[0]), copy)
    with (copy / "calls.py").open("a") as file:
        file.write("#\n")
    monkeypatch.setattr(verdict.bedstone.verify, "__path__", [str(copy)])
    recall(tmp_path)
    assert len(judgements) == 2


def test_another_python_judges_for_itself(tmp_path, judgements, monkeypatch):
    recall(tmp_path)
    monkeypatch.setattr(sys, "version", sys.version + "+")
    recall(tmp_path)
    assert len(judgements) == 2


def test_a_verifier_without_sources_keeps_nothing(tmp_path, judgements, monkeypatch):
    for package in (verdict.bedstone.verify, verdict.bedstone.spec):
        monkeypatch.setattr(package, "__path__", [str(tmp_path)])
    recall(tmp_path)
    recall(tmp_path)
    assert len(judgements) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("contents", ["", "0" * 64, "sound"])
def test_a_file_that_does_not_say_its_own_name_counts_for_nothing(tmp_path, contents):
    planted(tmp_path, UNSOUND).write_text(contents)
    with pytest.raises(RefusedError):
        recall(tmp_path, UNSOUND)


def test_a_file_with_more_than_its_name_counts_for_nothing(tmp_path):
    path = planted(tmp_path, UNSOUND)
    path.write_text(path.name + "\n")
    with pytest.raises(RefusedError):
        recall(tmp_path, UNSOUND)


def test_whoever_is_this_user_may_say_what_he_likes(tmp_path):
    planted(tmp_path, UNSOUND)
    assert recall(tmp_path, UNSOUND).manifest == parse(UNSOUND)


def write_by_others(path: Path) -> None:
    path.chmod(0o666)


def folder_by_group(path: Path) -> None:
    path.parent.chmod(0o770)


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def folder_link(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))
    path.parent.symlink_to("elsewhere")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir(0o700)


@pytest.mark.parametrize(
    "spoil", [write_by_others, folder_by_group, link, folder_link, pipe, directory]
)
def test_a_verdict_that_others_could_have_put_there_is_not_believed(tmp_path, spoil):
    spoil(planted(tmp_path, UNSOUND))
    with pytest.raises(RefusedError):
        recall(tmp_path, UNSOUND)


def test_a_verdict_of_another_user_is_not_believed(tmp_path, monkeypatch):
    planted(tmp_path, UNSOUND)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(RefusedError):
        recall(tmp_path, UNSOUND)


def test_a_cache_that_cannot_be_written_fails_nothing(tmp_path, judgements):
    (tmp_path / VERDICTS).write_text("a file")
    recall(tmp_path)
    recall(tmp_path)
    assert len(judgements) == 2


def test_a_package_brings_no_verdict_of_its_own(tmp_path, cache):
    package = tmp_path / "package"
    parts = toy_parts(package / KERNELS, cache)
    text = serialize(parts.manifest).encode()
    unsound = text.replace(*RULE)
    (package / MANIFEST).write_bytes(unsound)
    planted(package, unsound)
    with pytest.raises(ManifestError):
        load(package, cache=cache, threads=1)


def test_a_second_load_reads_no_rule(tmp_path, cache):
    package = tmp_path / "package"
    parts = toy_parts(package / KERNELS, cache)
    (package / MANIFEST).write_text(serialize(parts.manifest))
    program = (
        "import sys; from bedstone.runtime.load import load; "
        f"load({str(package)!r}, cache={str(tmp_path / 'cache')!r}, threads=1).close(); "
        "print('bedstone.verify.table' in sys.modules)"
    )
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [run.stdout.strip() for run in runs] == ["True", "False"]
