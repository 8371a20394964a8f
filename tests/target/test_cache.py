"""The place where compiled code is kept."""

import multiprocessing
import os
import signal
import threading
from functools import partial
from pathlib import Path

import pytest

from bedstone.errors import CallerError
from bedstone.target.cache import made_once, require_cache, write_whole


def hold(path: Path, holds) -> None:
    """Never get done with making a file."""
    made_once(path, lambda: (holds.set(), signal.pause()))


def test_what_a_killed_process_was_making_is_made_by_another(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    holds, path = spawn.Event(), tmp_path / "modules" / "m.so"
    holder = spawn.Process(target=hold, args=(path, holds))
    holder.start()
    assert holds.wait(30)
    waits = threading.Thread(target=made_once, args=(path, partial(write_whole, path, b"made")))
    waits.start()
    waits.join(0.2)
    assert waits.is_alive()
    os.kill(holder.pid, signal.SIGKILL)
    waits.join(30)
    holder.join(30)
    assert path.read_bytes() == b"made"
    assert [entry.name for entry in path.parent.iterdir()] == ["m.so"]


def test_what_is_there_is_not_made_again(tmp_path):
    (tmp_path / "m.so").write_bytes(b"there")
    tmp_path.chmod(0o500)
    made_once(tmp_path / "m.so", lambda: pytest.fail("it was made"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.so"]


def test_where_no_lock_can_be_had_it_is_made_all_the_same(tmp_path, monkeypatch):
    def no_locks(_handle: int, _operation: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    path = made_once(tmp_path / "m.so", partial(write_whole, tmp_path / "m.so", b"made"))
    assert path.read_bytes() == b"made"


def test_one_that_cannot_be_made_leaves_no_lock(tmp_path):
    def fail() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made_once(tmp_path / "m.so", fail)
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_cannot_be_kept_in_is_told_before_a_compile(tmp_path):
    (tmp_path / "file").touch()
    require_cache(tmp_path / "fresh" / "packages")
    with pytest.raises(CallerError, match="packages` cannot be written: Not a directory; name"):
        require_cache(tmp_path / "file" / "packages")
