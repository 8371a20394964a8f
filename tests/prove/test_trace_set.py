import json
import multiprocessing
import os
import signal
import time

import pytest

from bedstone.errors import CallerError, DefinitionError
from bedstone.prove.append import append_lines, read_lines
from bedstone.prove.trace_set import (
    append_traces,
    append_workloads,
    read_trace_set,
    write_definition,
    write_solution,
)
from bedstone.spec.trace import Trace
from definitions import definition, solution, workload
from prove.outcomes import passed


def line(n):
    return json.dumps({"n": n, "pad": "é" * 40})


def numbers(path):
    return [json.loads(text)["n"] for text in read_lines(path)]


def test_a_set_is_laid_out_as_flashinfer_bench_lays_it_out(tmp_path):
    of, one = definition(), solution("def run(x):\n    return x\n")
    on = workload()
    paths = [
        write_definition(tmp_path, of),
        write_solution(tmp_path, of, one),
        append_workloads(tmp_path, of, [on]),
        append_traces(tmp_path, of, "tester", [Trace("double_n", on, one.name, passed(1.0))]),
    ]
    assert [str(path.relative_to(tmp_path)) for path in paths] == [
        "definitions/scale/double_n.json",
        "solutions/tester/scale/double_n/candidate.json",
        "workloads/scale/double_n.jsonl",
        "traces/tester/scale/double_n.jsonl",
    ]
    found = read_trace_set(tmp_path)
    assert found.unreadable == ()
    assert found.definition("double_n") == of
    assert found.solution("double_n", "candidate") == one
    assert found.workloads == {"double_n": [on]}
    assert [trace.passed for trace in found.every_trace()] == [True]


def test_a_bad_file_is_told_of_and_takes_no_other_with_it(tmp_path):
    write_definition(tmp_path, definition())
    folder = tmp_path / "definitions"
    (folder / "broken.json").write_text('{"name": ')
    (folder / "nameless.json").write_text("{}")
    (folder / "twice.json").write_text((folder / "scale" / "double_n.json").read_text())
    append_workloads(tmp_path, definition(), [workload()])
    path = tmp_path / "workloads" / "scale" / "double_n.jsonl"
    path.write_text(path.read_text() + '{"definition": "double_n"}\n' + line(1) + "\n")
    found = read_trace_set(tmp_path)
    assert set(found.definitions) == {"double_n"}
    assert len(found.workloads["double_n"]) == 1
    assert [u.path.name for u in found.unreadable] == [
        "broken.json",
        "nameless.json",
        "twice.json",
        "double_n.jsonl",
        "double_n.jsonl",
    ]


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(CallerError, match="is no folder"):
        read_trace_set(tmp_path / "nowhere")
    found = read_trace_set(tmp_path)
    with pytest.raises(CallerError, match="has no definition `d`"):
        found.definition("d")
    with pytest.raises(CallerError, match="has no solution `s` of `d`"):
        found.solution("d", "s")


@pytest.mark.parametrize("name", ["../up", "a/b", "a\\b", "..", "x" * 300])
def test_a_name_that_would_lead_elsewhere_names_no_file(tmp_path, name):
    with pytest.raises(DefinitionError, match="cannot be the name of a file"):
        write_definition(tmp_path, definition(name=name))


@pytest.mark.slow
def test_a_kill_at_any_byte_loses_only_the_line_being_written(tmp_path):
    path = tmp_path / "t.jsonl"
    append_lines(path, [line(0), line(1)])
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        complete = [0, 1][: whole[:cut].count(b"\n")]
        # a last line that lacks its end only is whole
        if cut + 1 in (len(whole), whole.index(b"\n") + 1):
            complete = [0, 1][: len(complete) + 1]
        assert numbers(path) == complete
        append_lines(path, [line(2)])
        assert numbers(path) == [*complete, 2]
        # and every line of the file is one that any reader reads
        assert [json.loads(text)["n"] for text in path.read_text().splitlines()] == [*complete, 2]


def test_a_torn_line_longer_than_a_block_is_dropped_whole(tmp_path):
    path = tmp_path / "t.jsonl"
    append_lines(path, [line(0)])
    with path.open("ab") as file:
        file.write(b'{"pad": "' + b"x" * 200_000)
    append_lines(path, [line(1)])
    assert numbers(path) == [0, 1]


def _write(path, start, count):
    for n in range(start, start + count):
        append_lines(path, [line(n)])


@pytest.mark.slow
def test_writers_at_once_lose_nothing_though_some_are_killed(tmp_path):
    path = tmp_path / "t.jsonl"
    fork = multiprocessing.get_context("spawn")
    steady = [fork.Process(target=_write, args=(path, 1000 * n, 60)) for n in (1, 2)]
    doomed = [fork.Process(target=_write, args=(path, 10**6 * n, 10**6)) for n in (1, 2)]
    for process in (*steady, *doomed):
        process.start()
    deadline = time.monotonic() + 30
    while path.exists() is False or len(read_lines(path)) < 60:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for process in doomed:
        os.kill(process.pid, signal.SIGKILL)
    for process in (*steady, *doomed):
        process.join(60)
    append_lines(path, [line(7)])
    found = numbers(path)
    assert len(found) == len(set(found))
    for n in (1, 2):
        assert [x for x in found if 1000 * n <= x < 1000 * n + 60] == list(
            range(1000 * n, 1000 * n + 60)
        )
        own = [x for x in found if 10**6 * n <= x < 10**6 * (n + 1)]
        assert own == list(range(10**6 * n, 10**6 * n + len(own)))
    assert found[-1] == 7
