"""Compilers in processes of their own: as many as cores, none for nothing, and one that dies."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from bedstone.errors import KernelError, TargetError
from bedstone.target import worker as workers
from bedstone.target.side_by_side import untold
from bedstone.target.toolchain import Unit
from bedstone.target.worker import Worker, compile_apart

COPY = "copy(request['source'], request['output'])"
HEAD = """\
import json, os, signal, sys, time
from shutil import copyfile as copy
request = json.load(sys.stdin)
"""
MOST_SECONDS = 60


def script(folder: Path, body: str) -> Worker:
    path = folder / "script.py"
    path.write_text(HEAD + textwrap.dedent(body))
    return Worker(path, ("-I",), "a compiler", lambda unit: {"flags": list(unit.flags)})


def units(folder: Path, count: int) -> list[Unit]:
    made = [folder / f"k{i}.cu" for i in range(count)]
    for path in made:
        path.write_text(path.name)
    return [Unit((path,), ("-x",), {"BS_FORMAT": "F"}) for path in made]


def compiled(folder: Path, body: str, count: int = 1, told=untold) -> tuple[Path, ...]:
    some, by = units(folder, count), script(folder, body)
    return compile_apart(some, "sm_90a", by, cache=folder / "cache", told=told)


def test_modules_come_in_order_and_each_is_told_of(tmp_path):
    told = []
    made = compiled(
        tmp_path, f"assert request['flags'] == ['-x']\n{COPY}", 5, lambda *n: told.append(n)
    )
    assert [path.read_text() for path in made] == [f"k{i}.cu" for i in range(5)]
    assert told == [(done, 5) for done in range(1, 6)]


def test_what_is_compiled_already_starts_no_process(tmp_path, monkeypatch):
    made = compiled(tmp_path, COPY, 2)
    started = []
    monkeypatch.setattr(subprocess, "run", lambda *given, **_: started.append(given))
    assert compiled(tmp_path, COPY, 2) == made
    assert compiled(tmp_path, COPY, 0) == ()
    assert started == []


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="has one core")
def test_two_are_at_work_at_once(tmp_path):
    waits = f"""
    me = os.path.basename(request['source'])
    here = {str(tmp_path)!r}
    open(os.path.join(here, me + '.begun'), 'w').close()
    while len([n for n in os.listdir(here) if n.endswith('.begun')]) < 2:
        time.sleep(0.01)
    {COPY}
    """
    assert len(compiled(tmp_path, waits, 2)) == 2


@pytest.mark.parametrize(
    ("body", "kind", "told"),
    [
        ("print('k0.cu(6): error: no such name'); sys.exit(3)", KernelError,
         r"`k0\.cu` does not compile for `sm_90a` with `BS_FORMAT=F`:\nk0\.cu\(6\): error: no"),
        ("raise ValueError('of the compiler')", KernelError, "ValueError: of the compiler"),
        ("sys.exit(0)", KernelError, "its process ended and left no code"),
        ("os.kill(os.getpid(), signal.SIGKILL)", TargetError,
         r"`k0\.cu` for `sm_90a` with `BS_FORMAT=F`: its .* by a signal \(`Killed`\).*`taskset`"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", TargetError, r"signal \(`Segmentation fault`\)"),
    ],
    ids=["refused", "raises", "leaves-nothing", "killed", "crashes"],
)  # fmt: skip
def test_one_that_fails_is_an_error_that_names_the_module(tmp_path, body, kind, told):
    with pytest.raises(kind, match=f"(?s){told}"):
        compiled(tmp_path, body)
    assert not list(tmp_path.glob("cache/*"))


def test_one_that_takes_too_long_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "_SECONDS", 0.2)
    with pytest.raises(KernelError, match=r"takes more than 0\.2 s"):
        compiled(tmp_path, f"time.sleep({MOST_SECONDS})")


def test_an_interpreter_that_cannot_be_run_is_the_machines_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    with pytest.raises(TargetError, match=r"`k0\.cu` .* cannot be started: .*No such file"):
        compiled(tmp_path, COPY)


INTERRUPTED = """
from pathlib import Path
from test_worker import COPY, compiled

slow = "open(request['source'] + '.begun', 'w').close(); time.sleep(1);" + COPY
compiled(Path({folder!r}), slow, 50)
"""


def test_an_interrupt_waits_for_those_at_work_and_begins_no_other(tmp_path):
    # a terminal interrupts every process of its group
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED.format(folder=str(tmp_path))],
        cwd=Path(__file__).parent,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        until = time.monotonic() + MOST_SECONDS
        while not list(tmp_path.glob("*.begun")) and time.monotonic() < until:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=MOST_SECONDS)
    assert b"KeyboardInterrupt" in err
    begun, made = list(tmp_path.glob("*.begun")), list(tmp_path.glob("cache/*.cubin"))
    assert 0 < len(begun) == len(made) < 50
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
