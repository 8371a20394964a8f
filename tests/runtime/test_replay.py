"""The native replayer: every block once, every launch after the one before, on any threads."""

import ctypes
import os
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bedstone.errors import CallerError, DeviceError
from bedstone.runtime.cpu.cores import usable_cores
from bedstone.runtime.cpu.replayer import Replayer, build_replayer
from bedstone.runtime.device import Tap
from bedstone.target.toolchain import Unit, compile_unit, find_compiler
from runtime_toy import INCLUDE, compile_module


@pytest.fixture(scope="module")
def stress(tmp_path_factory, cache):
    folder = tmp_path_factory.mktemp("stress")
    compile_module(Path(__file__).with_name("stress.c"), folder, cache)
    return ctypes.CDLL(str(next(folder.iterdir())))


@pytest.fixture(params=[1, 2, 4])
def pool(request, cache):
    replayer = Replayer(build_replayer(cache), request.param)
    yield replayer
    replayer.close()


class List:
    """A launch list under construction."""

    def __init__(self, library):
        self.library, self.rows, self.kept = library, [], []

    def add(self, entry, args, grid, shared=0, active=1):
        words = np.array(
            [a.ctypes.data if isinstance(a, np.ndarray) else a for a in args], np.uint64
        )
        self.kept += [words, *args]
        address = ctypes.cast(getattr(self.library, entry), ctypes.c_void_p).value
        x, y, z = grid if isinstance(grid, tuple) else (grid, 1, 1)
        self.rows.append([address, words.ctypes.data, x, y, z, shared, active])

    def replay(self, pool, repeat=1, taps=()):
        table = np.array(self.rows, np.uint64).reshape(-1, 7)
        pool.replay(table.ctypes.data, len(table), repeat, taps)


def test_each_block_of_a_grid_runs_once(stress, pool):
    grids = [(1, 1, 1), (2, 1, 1), (3, 5, 7), (1, 1, 9), (64, 1, 1), (1, 17, 1)]
    counts = [np.zeros(x * y * z, np.int32) for x, y, z in grids]
    launches = List(stress)
    for grid, count in zip(grids, counts, strict=True):
        launches.add("tick", [count], grid)
    launches.replay(pool, repeat=300)
    assert all((count == 300).all() for count in counts)


def test_a_launch_sees_all_of_the_one_before(stress, pool):
    rng = np.random.default_rng(3)
    sizes = rng.choice([1, 1, 2, 3, 4, 8, 31], 400)
    current = np.ones(1, np.int32)
    want = current.astype(np.uint32)
    launches = List(stress)
    for size in sizes:
        following = np.zeros(size, np.int32)
        launches.add("gather", [current, following, len(current)], int(size))
        current = following
        want = want.sum(dtype=np.uint32) + np.arange(size, dtype=np.uint32)
    for _ in range(20):
        current[:] = 0
        launches.replay(pool)
        assert np.array_equal(current.view(np.uint32), want)


def test_thousands_of_tiny_replays(stress, pool):
    count = np.zeros(5, np.int32)
    launches = List(stress)
    launches.add("tick", [count], 5)
    launches.add("tick", [count], 1)
    for _ in range(3000):
        launches.replay(pool)
    assert count.tolist() == [6000, 3000, 3000, 3000, 3000]


def test_inactive_and_empty_launches_do_nothing(stress, pool):
    count = np.zeros(4, np.int32)
    launches = List(stress)
    launches.add("tick", [count], 4, active=0)
    launches.add("tick", [count], (4, 0, 1))
    launches.replay(pool, repeat=3)
    List(stress).replay(pool)
    assert not count.any()


def test_shared_memory_is_a_block_s_own(stress, pool):
    pool.reserve(4 * 1000)
    bad = np.ones(64, np.int32)
    launches = List(stress)
    launches.add("scratch", [bad, 1000], 64, shared=4000)
    launches.replay(pool, repeat=5)
    assert not bad.any()


def test_taps_collect_what_each_repetition_left(stress, pool):
    count, other = np.zeros(6, np.int32), np.zeros(1, np.int32)
    sink, single = np.zeros((50, 6), np.int32), np.zeros((50, 1), np.int32)
    launches = List(stress)
    launches.add("tick", [other], 1)
    launches.add("tick", [count], 6)
    taps = [
        Tap(count.ctypes.data, sink.ctypes.data, count.nbytes),
        Tap(other.ctypes.data, single.ctypes.data, other.nbytes),
    ]
    launches.replay(pool, repeat=50, taps=taps)
    assert np.array_equal(sink, np.repeat(np.arange(1, 51)[:, None], 6, 1))
    assert np.array_equal(single, np.arange(1, 51)[:, None])


def test_callers_in_several_threads_take_turns(stress, cache):
    pool = Replayer(build_replayer(cache), 2)
    count = np.zeros(8, np.int32)
    launches = List(stress)
    launches.add("tick", [count], 8)
    threads = [
        threading.Thread(target=lambda: [launches.replay(pool) for _ in range(200)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pool.close()
    assert count.tolist() == [800] * 8


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the control word is x86's")
def test_a_caller_that_flushes_subnormals_changes_nothing(stress, pool, tmp_path, cache):
    source = tmp_path / "mode.c"
    source.write_text(
        "#include <xmmintrin.h>\n"
        "unsigned get(void) { return _mm_getcsr(); }\nvoid set(unsigned m) { _mm_setcsr(m); }\n"
    )
    compile_module(source, tmp_path / "lib", cache)
    mode = ctypes.CDLL(str(next((tmp_path / "lib").iterdir())))
    kept = np.zeros(16, np.int32)
    launches = List(stress)
    launches.add("subnormal", [kept], 16)
    before = mode.get()
    mode.set(before | 0x8040)
    launches.replay(pool)
    during = mode.get()
    mode.set(before)
    assert kept.all()
    assert during == before | 0x8040


def test_a_forked_child_is_told_to_load_its_own(stress, cache):
    pool = Replayer(build_replayer(cache), 2)
    child = os.fork()
    if child == 0:
        try:
            List(stress).replay(pool)
        except DeviceError as error:
            os._exit(0 if "forked" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    pool.close()


def test_a_closed_pool_runs_nothing(stress, cache):
    pool = Replayer(build_replayer(cache), 2)
    pool.close()
    pool.close()
    with pytest.raises(CallerError, match="closed"):
        List(stress).replay(pool)


def test_a_replayer_that_was_cut_short_is_named(cache, tmp_path):
    cut = tmp_path / "replay.so"
    cut.write_bytes(build_replayer(cache).read_bytes()[:100])
    with pytest.raises(DeviceError, match=r"replay\.so` does not load"):
        Replayer(cut, 1)


@pytest.mark.parametrize("threads", [0, -1, 10**6])
def test_a_senseless_number_of_threads_is_refused(cache, threads):
    with pytest.raises(CallerError, match=f"`threads` is {threads}"):
        Replayer(build_replayer(cache), threads)


def fake_cpus(folder, siblings):
    for cpu in os.sched_getaffinity(0):
        topology = folder / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(siblings(cpu))
    return folder


def test_one_thread_for_each_physical_core(tmp_path):
    allowed = sorted(os.sched_getaffinity(0))
    one = fake_cpus(tmp_path / "one", lambda _: "0-999\n")
    each = fake_cpus(tmp_path / "each", lambda cpu: f"{cpu}\n")
    nowhere = tmp_path / "none"
    assert usable_cores(one, nowhere) == (allowed[0],)
    assert usable_cores(each, nowhere) == tuple(allowed)
    assert usable_cores(nowhere, nowhere) == tuple(allowed)


@pytest.mark.parametrize(("text", "cores"), [("50000 100000\n", 1), ("max 100000\n", None)])
def test_a_container_s_quota_caps_the_threads(tmp_path, text, cores):
    quota = tmp_path / "cpu.max"
    quota.write_text(text)
    assert len(usable_cores(tmp_path, quota)) == (cores or len(os.sched_getaffinity(0)))


def address_of(library, name):
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value


def test_a_thread_knows_what_its_share_of_a_launch_to_come_reads(stress, pool):
    pool.ask(address_of(stress, "tick"), address_of(stress, "bs_reads_tick"))
    ctypes.c_void_p.in_dll(stress, "bs_along").value = pool.along
    launches, ticked = List(stress), np.zeros(10, np.int32)
    seen = [np.full((16, 3), -1, np.int32) for _ in range(12)]
    for out in seen[:10]:
        launches.add("watch", [out], 16)
    launches.add("tick", [ticked], 7, active=0)
    launches.add("tick", [ticked], 10)
    for out in seen[10:]:
        launches.add("watch", [out], 16)
    launches.replay(pool, repeat=50)
    each, rest = divmod(10, pool.threads)
    cuts = [each * i + min(i, rest) for i in range(pool.threads + 1)]
    shares = {(2, from_, to) for from_, to in pairwise(cuts)}
    assert (ticked == 50).all()
    for at, out in enumerate(seen):
        found = {tuple(row) for row in out.tolist()}
        assert found <= (shares if 3 <= at < 10 else {(0, 0, 0)}), at


def test_a_thread_outside_of_a_job_knows_of_nothing(pool):
    assert ctypes.CFUNCTYPE(ctypes.c_void_p)(pool.along)() is None


@pytest.fixture(scope="module")
def pool_stress(cache):
    source = Path(__file__).with_name("pool_stress.c")
    unit = Unit((source,), ("-O2", "-pthread"), include=INCLUDE)
    return ctypes.CDLL(str(compile_unit(unit, cache=cache, compiler=find_compiler()))).stress


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("spins", [0, 2000])
def test_lists_that_are_freed_at_once_are_never_looked_at_again(pool_stress, threads, spins):
    assert pool_stress(threads, 1000, spins, threads) == 0
