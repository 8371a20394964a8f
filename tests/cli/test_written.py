"""Files a user names for a result."""

import os
from pathlib import Path

import pytest

from bedstone.cli.written import write_file
from bedstone.errors import CallerError


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    write_file(path, "né\n")
    assert path.read_bytes() == "né\n".encode()
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_is_as_it_was(tmp_path):
    with pytest.raises(CallerError, match=r"`.*nowhere.page` cannot be written"):
        write_file(tmp_path / "nowhere" / "page", "x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(CallerError, match="folder"):
        write_file(tmp_path / "folder", "x")
    path = tmp_path / "kept"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_file(path, "\ud800")
    assert path.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "kept"]


def test_a_link_and_a_pipe_are_written_through(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    write_file(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"
    read, write = os.pipe()
    try:
        write_file(Path(f"/dev/fd/{write}"), "through")
        assert os.read(read, 100) == b"through"
    finally:
        os.close(read)
        os.close(write)
