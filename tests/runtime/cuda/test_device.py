"""Steps of the toy model on the CUDA device, over a driver that is as late as a real one may be."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from bedstone.errors import DeviceError, WeightError
from bedstone.runtime.device import Places
from bedstone.runtime.generate import Generator
from bedstone.runtime.load import load
from bedstone.runtime.reserve import HostRows
from cuda_toy import kv, toy_cuda_parts
from runtime_toy import CONTEXT, PAGE, VOCAB, expected

PROMPT = [5, 11, 2, 40, 7, 1, 31, 8, 3, 9, 21]


@pytest.fixture
def session(driver, tmp_path):
    with load(toy_cuda_parts(tmp_path), device="cuda") as session:
        yield session
    assert driver.leaks() == set()
    assert driver.closed


def test_prompt_and_steps_agree_with_the_sum(session):
    assert list(Generator(session).generate(PROMPT, 12)) == expected(PROMPT, 12)


@pytest.mark.parametrize("chunk", [1, 3, 8])
def test_any_chunking_and_order_of_pages(session, chunk):
    order = [7, 2, 9, 0, 5, 4, 1, 3, 8, 6]
    generator = Generator(session, pages=order)
    assert generator.prefill(PROMPT, chunk) == expected(PROMPT, 1)[0]
    slots = [order[at // PAGE] * PAGE + at % PAGE for at in range(len(PROMPT))]
    assert kv(session)[slots].tolist() == PROMPT


def test_a_chain_is_recorded_once_and_a_step_is_one_call(session, driver):
    list(Generator(session).generate(PROMPT, 20))
    assert driver.calls["instantiate"] == 1
    assert driver.calls["launch_graph"] == 19


def test_many_steps_are_enqueued_before_one_is_waited_for(session, driver):
    generator = Generator(session)
    first = generator.prefill(PROMPT)
    before = len(driver.names())
    run = session.start("chained", 9, ["next"])
    assert driver.calls["launch_graph"] == 9
    assert len(driver.names()) == before
    assert [first, *run.wait()[0].ravel().tolist()] == expected(PROMPT, 10)


def test_runs_are_read_in_any_order(session):
    generator = Generator(session)
    first = generator.prefill(PROMPT)
    runs = [session.start("chained", 2, ["next", "error"]) for _ in range(5)]
    found = {at: runs[at].wait()[0].ravel().tolist() for at in (3, 0, 4, 2, 1)}
    tokens = [token for at in range(5) for token in found[at]]
    assert [first, *tokens] == expected(PROMPT, 11)


def test_more_steps_than_a_ring_has_rows(session, monkeypatch):
    generator = Generator(session)
    monkeypatch.setattr("bedstone.runtime.cuda.ring._RING_BYTES", 64)
    monkeypatch.setattr("bedstone.runtime.cuda.ring._LEAST_ROWS", 4)
    first = generator.prefill(PROMPT)
    early = session.start("chained", 3, ["next"])
    late = session.start("chained", 11, ["next"])
    tokens = [*early.wait()[0].ravel().tolist(), *late.wait()[0].ravel().tolist()]
    assert [first, *tokens] == expected(PROMPT, 15)


def test_a_stopped_stream_goes_on_where_it_was_read(session):
    tokens = expected(PROMPT, 4)
    generator = Generator(session)
    assert list(generator.generate(PROMPT, 20, {tokens[3]})) == tokens[:3]
    history = [*PROMPT, *tokens[:3]]
    assert generator.length == len(history)
    history = [*history, tokens[3], 8]
    assert generator.prefill([tokens[3], 8]) == expected(history, 1)[0]
    assert generator.step() == expected(history, 2)[1]


def test_a_caller_that_leaves_early_goes_on_as_well(session):
    generator = Generator(session)
    stream = generator.generate(PROMPT, 20)
    taken = [next(stream) for _ in range(3)]
    stream.close()
    assert taken == expected(PROMPT, 3)
    assert generator.step() == expected(PROMPT, 4)[3]


def test_the_context_bounds_what_runs_ahead(session, driver):
    room = CONTEXT - len(PROMPT) + 1
    assert list(Generator(session).generate(PROMPT, 1000)) == expected(PROMPT, room)
    assert driver.calls["launch_graph"] == room - 1


def test_a_broken_step_says_which(session):
    generator = Generator(session)
    with pytest.raises(WeightError, match="non-finite logits at step 2"):
        list(generator.generate([12, 12], 9))
    generator.reset()
    assert generator.prefill([3]) == 3


def test_what_a_step_writes_is_one_copy(session, driver):
    session.write("token", np.array([1], np.int32))
    session.write("position", np.array([0], np.int32))
    session.write("slot", np.array([0], np.int32))
    session.run("decode")
    before = driver.calls["copy_in"]
    session.write("token", np.array([2], np.int32))
    session.write("position", np.array([1], np.int32))
    session.write("slot", np.array([1], np.int32))
    session.run("decode")
    assert driver.calls["copy_in"] == before + 1
    session.run("decode")
    assert driver.calls["copy_in"] == before + 1


def test_the_host_may_write_on_while_steps_are_under_way(session):
    """Each run sees the token written before it, though none has run yet."""
    runs = []
    session.write("pages", np.arange(10, dtype=np.int32)[None])
    for at, token in enumerate(PROMPT):
        for name, value in (("token", token), ("position", at), ("slot", at)):
            session.write(name, np.array([value], np.int32))
        runs.append(session.start("decode", 1, ["next"]))
    found = [int(run.wait()[0][0, 0]) for run in runs]
    assert found == [sum(PROMPT[: at + 1]) % VOCAB for at in range(len(PROMPT))]


def test_inputs_read_back_as_written(session):
    session.write("token", np.arange(8, dtype=np.int32))
    session.write("token", np.array([90, 91], np.int32))
    assert session.region("token").view(np.int32).tolist() == [90, 91, 2, 3, 4, 5, 6, 7]


def test_e06_a_rewritten_capture_launches_what_the_vars_say(session, driver):
    for rows in (8, 3, 8, 1):
        session.write("slot", np.arange(8, dtype=np.int32))
        session.run("prefill", tokens=rows)
    stores = [launch.grid for launch in driver.launched if launch.name == "store"]
    assert stores == [(8, 1, 1), (3, 1, 1), (8, 1, 1), (1, 1, 1)]
    assert "instantiate" not in driver.calls


def test_an_assignment_that_comes_again_is_recorded(session, driver):
    session.write("slot", np.arange(8, dtype=np.int32))
    order = (8, 3, 8, 5, 8, 8, 3, 8, 3, 3, 5)
    for rows in order:
        session.run("prefill", tokens=rows)
    stores = [launch.grid[0] for launch in driver.launched if launch.name == "store"]
    assert stores == list(order)
    # the third time and from then on
    assert driver.calls["instantiate"] == 2
    assert driver.calls["launch_graph"] == 3 + 2


def test_what_came_long_ago_is_forgotten(session, driver, monkeypatch):
    monkeypatch.setattr("bedstone.runtime.program._MOST_CAPTURES", 2)
    session.write("slot", np.arange(8, dtype=np.int32))
    for rows in (8, 8, 3, 5, 8, 8, 3, 5):
        session.run("prefill", tokens=rows)
    assert "instantiate" not in driver.calls
    session.run("prefill", tokens=5)
    session.run("prefill", tokens=5)
    assert driver.calls["instantiate"] == 1


def test_graphs_are_kept_for_the_latest_assignments(driver, tmp_path, monkeypatch):
    monkeypatch.setattr("bedstone.runtime.program._MOST_CAPTURES", 2)
    parts = toy_cuda_parts(tmp_path)
    programs = {**parts.manifest.programs}
    programs["prefill"] = replace(programs["prefill"], graph=True)
    order = (8, 3, 8, 1, 8, 3, 3, 1)
    with load(toy_cuda_parts(tmp_path, programs=programs), device="cuda") as session:
        session.write("slot", np.arange(8, dtype=np.int32))
        for rows in order:
            session.run("prefill", tokens=rows)
        stores = [launch.grid[0] for launch in driver.launched if launch.name == "store"]
        kept = [kind for kind, _ in driver.objects.values() if kind == "executable"]
        assert stores == list(order)
        assert len(kept) == 2
        assert driver.calls["launch_graph"] == len(order)
    assert driver.leaks() == set()


def test_what_depends_on_how_many_sequences_there_are_alone_is_recorded(driver, tmp_path):
    """A chain has no batch, so it may not be declared: it is recorded for each number of them."""
    parts = toy_cuda_parts(tmp_path)
    programs = {**parts.manifest.programs}
    programs["prefill"] = replace(programs["prefill"], batch=None)
    known = parts.manifest.vars
    axes = {"tokens": "groups", "seqs": "rows"}
    counted = {name: replace(var, axis=axes[name]) for name, var in known.items()}
    changed = toy_cuda_parts(tmp_path, programs=programs, vars=counted)
    with load(changed, device="cuda") as session:
        session.write("slot", np.arange(8, dtype=np.int32))
        for many in (8, 3, 8, 3):
            session.run("prefill", tokens=many)
        assert driver.calls["instantiate"] == 2
        assert driver.calls["launch_graph"] == 4
    assert driver.leaks() == set()


def test_a_state_is_copied_in_the_order_of_the_steps(session):
    """A page copied behind a prompt: the copy has the prompt's, and what follows may differ."""
    generator = Generator(session, [1, 0, 2, 3, 4, 5, 6, 7, 8, 9])
    generator.prefill(PROMPT)
    page = PAGE * 8
    session.copy("kv", 9 * page, page, page)
    session.clear("kv", page, page)
    pages = session.region("kv").view(np.int64).reshape(-1, PAGE)
    assert pages[9].tolist() == PROMPT[:PAGE]
    assert not pages[1].any()


def test_threads_take_turns(session):
    generator = Generator(session)
    first = generator.prefill(PROMPT)
    found = []

    def step():
        found.append(int(session.repeat("chained", 1, ["next"])[0][0, 0]))

    threads = [threading.Thread(target=step) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted([first, *found]) == sorted(expected(PROMPT, 7))


def test_a_fault_names_the_program(session, driver):
    driver.refuse["cuEventSynchronize"] = "CUDA_ERROR_ILLEGAL_ADDRESS"
    with pytest.raises(DeviceError, match=r"program `decode`: .* `CUDA_ERROR_ILLEGAL_ADDRESS`"):
        session.run("decode")
    driver.refuse.clear()


def test_e08_a_refused_launch_ends_its_recording_and_is_named(session, driver):
    driver.refuse["launch"] = 9
    with pytest.raises(DeviceError, match=r"launch #0 \(`store`\) was refused with CUDA error 9"):
        session.run("decode")
    driver.refuse.clear()
    assert driver.recording is None
    generator = Generator(session)
    assert list(generator.generate(PROMPT, 5)) == expected(PROMPT, 5)


def test_outputs_of_a_run_nobody_waited_for_are_forgotten_safely(session):
    generator = Generator(session)
    generator.prefill(PROMPT)
    for _ in range(3):
        session.start("chained", 2, ["next"])
    assert generator.prefill([4]) == expected([*PROMPT, 4], 1)[0]


def test_a_state_is_saved_and_restored_and_nobody_waits(session, driver):
    page = PAGE * 8
    room = session.reserve(page)
    session.write("pages", np.arange(10, dtype=np.int32)[None])
    for name, value in (("token", 7), ("position", 0), ("slot", 0)):
        session.write(name, np.array([value], np.int32))
    run = session.start("decode", 1, ["next"])
    under_way = sum(map(len, driver.queues.values()))
    saved = room.save([HostRows("kv", 0, 0, page)])
    after = session.start("decode", 1, ["next"])
    assert sum(map(len, driver.queues.values())) > under_way
    # steps are over that were asked for later, and those copies did not begin
    after.wait()
    run.wait()
    assert not saved.ready
    saved.wait()
    assert saved.ready
    session.clear("kv", 0, page)
    back = room.restore([HostRows("kv", 3 * page, 0, page)])
    while not back.ready:
        pass
    back.wait()
    pages = session.region("kv").view(np.int64).reshape(-1, PAGE)
    assert pages[3].tolist() == [7, *[0] * (PAGE - 1)]
    assert not pages[0].any()
    room.close()


def test_pages_that_are_apart_on_the_host_are_one_copy(session, driver):
    page, stride = PAGE * 8, PAGE * 8 + 40
    room = session.reserve(5 * stride)
    given = np.arange(3 * page, dtype=np.uint8)
    session.fill("kv", page, given)
    before = driver.calls.get("copy_rows", 0)
    room.save([HostRows("kv", page, stride, page, 3, stride)]).wait()
    room.restore([HostRows("kv", 5 * page, stride, page, 3, stride)]).wait()
    assert driver.calls["copy_rows"] == before + 2
    found = session.region("kv").reshape(-1, page)
    assert np.array_equal(found[5:8].reshape(-1), given)
    room.close()


def test_elements_go_to_their_places_in_any_memory(session):
    device = session.loaded.device
    for memory in (device.allocate(64), device.allocate_inputs(64)):
        places = Places(np.array([9, 2]), 0, 2, 1, 2)
        device.open(memory).scatter(places, 4, np.array([5, 6], np.int32))
        found = device.read(memory.address, 64).view(np.int32)
        assert {int(at): int(found[at]) for at in np.flatnonzero(found)} == {2: 6, 9: 5}
