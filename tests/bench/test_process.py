"""The age of a process, as the kernel counts it."""

import os
import time

from bedstone.bench.process import process_seconds


def proc(folder, name, started, up):
    (folder / "self").mkdir()
    fields = ["S", *["0"] * 18, str(started), *["0"] * 10]
    (folder / "self/stat").write_text(f"42 ({name}) {' '.join(fields)}\n")
    (folder / "uptime").write_text(f"{up} 0.0\n")
    return folder


def test_it_is_the_time_since_boot_less_that_of_the_start(tmp_path):
    ticks = os.sysconf("SC_CLK_TCK")
    assert process_seconds(proc(tmp_path, "python3", 100 * ticks, 103.5)) == 3.5


def test_a_name_may_hold_what_looks_like_fields(tmp_path):
    ticks = os.sysconf("SC_CLK_TCK")
    assert process_seconds(proc(tmp_path, "a) S 1 2 (b", 7 * ticks, 8.0)) == 1.0


def test_a_system_that_does_not_tell_is_no_fault(tmp_path):
    assert process_seconds(tmp_path) is None


def test_this_process_gets_older():
    first = process_seconds()
    assert first is not None
    assert 0 < first < 86400
    time.sleep(0.05)
    assert first <= process_seconds() < first + 60
