import os
import signal
import subprocess
import sys

import pytest

from bedstone import errors
from bedstone.cli.app import COMMANDS
from bedstone.cli.guard import guarded
from command_line import bedstone

START = [sys.executable, "-c", "from bedstone.cli import main; main()"]


def test_help_lists_every_command():
    ended = bedstone("--help")
    assert ended.code == 0
    assert all(name in ended.out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name):
    ended = bedstone(name, "--help")
    assert ended.code == 0
    assert name in ended.out


def test_version_is_printed_and_nothing_runs():
    ended = bedstone("--version")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("bedstone ")


@pytest.mark.parametrize(
    "arguments", [["nothing"], ["verify"], ["schema", "--color"], ["cut", "x"]]
)
def test_a_usage_error_exits_2_on_stderr(arguments):
    ended = bedstone(*arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ManifestError, 2),
        (errors.KernelError, 2),
        (errors.CallerError, 2),
        (errors.TargetError, 3),
        (errors.DeviceError, 3),
    ],
)
def test_an_error_with_a_cause_is_one_line_and_its_own_code(error, code, capsys):
    def command():
        raise error("`x` is 3, expected 4")

    with pytest.raises(SystemExit) as ended:
        guarded(command)()
    assert ended.value.code == code
    assert capsys.readouterr().err == "bedstone: `x` is 3, expected 4\n"


def test_an_unexpected_error_keeps_its_traceback():
    def command():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        guarded(command)()


def test_an_interrupt_is_silent(capsys):
    def command():
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ended:
        guarded(command)()
    assert ended.value.code == 130
    assert capsys.readouterr() == ("", "")


def test_a_reader_that_leaves_is_silent():
    process = subprocess.Popen(
        [*START, "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_path()
    )
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), error) == (141, b"")


def test_the_process_ends_on_a_real_interrupt(tmp_path):
    fifo = tmp_path / "manifest.json"
    os.mkfifo(fifo)
    process = subprocess.Popen(
        [*START, "verify", str(fifo)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_path()
    )
    # Opening the other end returns once the command waits inside its own read.
    with fifo.open("wb"):
        process.send_signal(signal.SIGINT)
        out, error = process.communicate()
    assert (process.returncode, out, error) == (130, b"", b"")


def _path():
    return {"PYTHONPATH": os.pathsep.join(sys.path)}
