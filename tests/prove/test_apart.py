"""Work in a forked process: its result, its errors, its end."""

import os
import signal
import subprocess
import sys
import time

import pytest

from bedstone.errors import CallerError, CapacityError, DeviceError
from bedstone.prove.apart import Death, run_apart


def test_a_result_comes_back():
    assert run_apart(lambda _: {"pid": os.getpid()}, 30) != {"pid": os.getpid()}


def test_a_large_result_comes_back():
    assert run_apart(lambda _: b"x" * 5_000_000, 30) == b"x" * 5_000_000


def test_our_own_errors_are_raised_as_they_were():
    def work(_):
        raise CallerError("`x` is wrong")

    with pytest.raises(CallerError, match="`x` is wrong"):
        run_apart(work, 30)


def test_other_errors_come_with_their_traceback():
    with pytest.raises(DeviceError, match="ZeroDivisionError"):
        run_apart(lambda _: 1 // 0, 30)


def test_a_signal_is_told_with_what_was_marked():
    def work(mark):
        mark.set("a longer text")
        mark.set("here")
        os.kill(os.getpid(), signal.SIGSEGV)

    assert run_apart(work, 30) == Death("SIGSEGV", "here")


def test_an_error_that_counts_as_a_death_is_one():
    def work(mark):
        mark.set("here")
        raise CapacityError("too much")

    assert run_apart(work, 30, (CapacityError,)) == Death("too much", "here")
    with pytest.raises(CapacityError, match="too much"):
        run_apart(work, 30, (DeviceError,))


def test_an_exit_without_an_answer_is_a_death():
    assert run_apart(lambda _: os._exit(3), 30) == Death("exit code 3", "")


def test_work_without_end_is_ended():
    assert run_apart(lambda _: time.sleep(60), 0.2) == Death(
        "no end within 0.2 s", "", stalled=True
    )


def test_what_work_starts_ends_with_it_and_nobody_waits_for_that():
    def work(_):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        return child

    began = time.monotonic()
    child = run_apart(work, 30)
    assert time.monotonic() - began < 20
    while running(child):
        assert time.monotonic() - began < 30
        time.sleep(0.01)


def running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            # nobody may care that it has ended
            return not stat.read().rpartition(") ")[2].startswith("Z")
    except FileNotFoundError:
        return False


def test_what_a_kernel_prints_is_no_part_of_the_answer(capfd):
    def work(_):
        os.write(1, b"PASS: all is well\n")
        return 3

    assert run_apart(work, 30) == 3
    assert capfd.readouterr() == ("", "PASS: all is well\n")


ENDLESS = """
import os, time
from bedstone.prove.apart import run_apart

def work(mark):
    print(os.getpid(), flush=True)
    time.sleep(60)

run_apart(work, 60.0)
"""


def test_a_child_ends_with_its_parent_however_that_ends():
    with subprocess.Popen([sys.executable, "-c", ENDLESS], stderr=subprocess.PIPE) as parent:
        assert parent.stderr.readline()
        began = time.monotonic()
        parent.kill()
        # the child has this end of the pipe too
        assert parent.stderr.read() == b""
        assert time.monotonic() - began < 30
