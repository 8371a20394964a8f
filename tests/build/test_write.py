"""A directory appears whole or not at all."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bedstone.build.write import require_replaceable, write_directory
from bedstone.errors import CallerError

FILES = {"lock": b"1", "kernels/a.so": b"code"}


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_files_appear_under_their_names(tmp_path):
    write_directory(tmp_path / "deep" / "out", FILES, owned="lock")
    assert contents(tmp_path / "deep" / "out") == FILES
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]


def test_an_own_directory_is_replaced_whole(tmp_path):
    write_directory(tmp_path / "out", {**FILES, "old": b"0"}, owned="lock")
    write_directory(tmp_path / "out", FILES, owned="lock")
    assert contents(tmp_path / "out") == FILES


def test_an_empty_directory_is_filled(tmp_path):
    (tmp_path / "out").mkdir()
    write_directory(tmp_path / "out", FILES, owned="lock")
    assert contents(tmp_path / "out") == FILES


@pytest.mark.parametrize("name", ["notes", "kernels"])
def test_somebody_elses_directory_is_left_alone(tmp_path, name):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_bytes(b"mine")
    with pytest.raises(CallerError, match="is no package"):
        write_directory(tmp_path / "out", FILES, owned="lock")
    assert contents(tmp_path / "out") == {name: b"mine"}


def test_a_file_in_the_way_is_left_alone(tmp_path):
    (tmp_path / "out").write_bytes(b"mine")
    with pytest.raises(CallerError, match="is no package"):
        write_directory(tmp_path / "out", FILES, owned="lock")
    assert (tmp_path / "out").read_bytes() == b"mine"


def test_a_file_of_the_name_is_no_directory_of_ours(tmp_path):
    (tmp_path / "lock").write_bytes(b"mine")
    with pytest.raises(CallerError, match="is no package"):
        require_replaceable(tmp_path / "lock", "lock")


def test_a_failure_leaves_nothing(tmp_path):
    with pytest.raises(CallerError, match="cannot be written"):
        write_directory(tmp_path / "out", {"a": b"1", "a/b": b"2"}, owned="a")
    assert list(tmp_path.iterdir()) == []


def test_processes_that_write_at_once_all_succeed(tmp_path):
    def write_often():
        for _ in range(40):
            write_directory(tmp_path / "out", FILES, owned="lock")

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(write_often) for _ in range(6)]:
            done.result()
    assert contents(tmp_path / "out") == FILES
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_stood_there_comes_back_where_it_cannot_be_replaced(tmp_path, monkeypatch):
    write_directory(tmp_path / "out", FILES, owned="lock")
    replace = os.replace

    def refusing(source, target):
        if Path(source).name == "made":
            raise PermissionError(errno.EACCES, "no")
        replace(source, target)

    monkeypatch.setattr(os, "replace", refusing)
    with pytest.raises(CallerError, match="cannot be written: no"):
        write_directory(tmp_path / "out", {"lock": b"2"}, owned="lock")
    assert contents(tmp_path / "out") == FILES
