import os
import signal
import subprocess
import sys
from json import loads

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
    "arguments",
    [["nothing"], ["verify"], ["schema", "--color"], ["cut", "x"], ["bench", "--repeats", "0"]],
)
def test_a_usage_error_exits_2_on_stderr(arguments):
    ended = bedstone(*arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert len(ended.err.splitlines()) == 1
    assert ended.err.startswith("bedstone: ")
    command = " ".join(["bedstone", *arguments[: arguments[0] in COMMANDS]])
    assert ended.err.endswith(f"; see `{command} --help`\n")


def test_no_command_is_a_usage_error_that_shows_the_help():
    ended = bedstone()
    assert (ended.code, ended.err) == (2, "")
    assert all(name in ended.out for name in COMMANDS)


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


def test_a_file_that_cannot_be_used_is_one_line(tmp_path, capsys):
    def command():
        (tmp_path / "closed" / "x").mkdir()

    with pytest.raises(SystemExit) as ended:
        guarded(command)()
    assert ended.value.code == 2
    told = f"bedstone: `{tmp_path}/closed/x` cannot be used: No such file or directory\n"
    assert capsys.readouterr() == ("", told)


def test_nothing_in_a_message_acts_on_the_terminal(capsys):
    def command():
        raise errors.WeightError("tensor `\x1b]0;owned\x07 \u202e gr\u00fc \udcff` is\n  here")

    with pytest.raises(SystemExit):
        guarded(command)()
    told = "bedstone: tensor `\\x1b]0;owned\\x07 \\u202e gr\u00fc \\udcff` is\n  here\n"
    assert capsys.readouterr().err == told


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


def test_an_interrupt_before_the_command_began_is_silent(tmp_path):
    # the first module the command line imports is where the interrupt comes
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    env = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([*START, "schema"], capture_output=True, env=env, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_a_full_disk_is_one_line():
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*START, "schema"], stdout=full, stderr=subprocess.PIPE, env=_path(), check=False
        )
    assert done.returncode == 3
    assert done.stderr == b"bedstone: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-"])
def test_a_stream_the_caller_closed_leads_nowhere(closed):
    command = [*START, "verify", "nowhere"]
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$@" {closed}', "sh", *command],
        capture_output=True, env=_path(), check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("encoding", "spelled"),
    [("utf-8:strict", "gr\u00fc\\udcff"), ("ascii", "gr\\xfc\\udcff")],
)
@pytest.mark.parametrize("json", [False, True])
def test_text_that_stdout_cannot_spell_is_written_as_its_escapes(tmp_path, encoding, spelled, json):
    path = tmp_path / "gr\u00fc\udcff"
    path.write_text("{}")
    arguments = [*START, "verify", path, *(["--json"] if json else [])]
    env = _path() | {"PYTHONIOENCODING": encoding}
    done = subprocess.run(arguments, capture_output=True, env=env, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
    if json:
        assert loads(done.stdout)["manifest"] == str(path)
    else:
        assert spelled in done.stdout.decode()


def _path():
    return {"PYTHONPATH": os.pathsep.join(sys.path)}
