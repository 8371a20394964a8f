"""Where a step's time goes on the CPU: each launch, on every thread, as it runs in place.

    python scripts/profile_cpu_step.py CHECKPOINT [--each] [--sequences 16]

Every entry of the step's launch list is replaced by one that reads the clock around it, so
launches run as they always do: their weights cold, the threads' waits between them included. Of
each kind of launch it prints how many there are, their part of the step, and in microseconds a
launch: `wall`, from the end of the launch before to its own end; `busy`, the mean over threads of
the time inside its blocks; and `lost`, the rest: threads that wait, for a share of the work or at
the barrier.
"""

import argparse
import ctypes
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Self
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from bedstone.build.compile import compile_checkpoint
from bedstone.build.request import Options, Request
from bedstone.checkpoint.reference import open_checkpoint
from bedstone.lane.plan import RULES
from bedstone.runtime.cpu import device
from bedstone.runtime.cpu.replayer import Replayer
from bedstone.runtime.device import Tap
from bedstone.runtime.generate import Generator
from bedstone.runtime.image import LAUNCH_WORDS
from bedstone.runtime.load import load
from bedstone.runtime.session import Session
from bedstone.target.hardware import read_sets
from bedstone.target.sources import read_sources
from bedstone.target.toolchain import Unit, compile_many, find_compiler

CLOCKED = """
#define _GNU_SOURCE
#include <abi.h>
#include <dlfcn.h>
#include <time.h>
typedef void kernel(const bs_arg *, const bs_dim3 *, const bs_dim3 *, void *);
typedef struct { uint64_t entry, args, index, reads; } launch;
typedef struct { uint64_t first, last, busy, blocks; } span;
enum { THREADS = 64, LAUNCHES = 4096 };
BS_EXPORT span spans[THREADS][LAUNCHES];
static uint32_t threads;
static __thread uint32_t mine;
static uint64_t now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}
BS_EXPORT const char *name_of(void *entry)
{
    Dl_info info;
    return dladdr(entry, &info) && info.dli_sname ? info.dli_sname : "?";
}
static void run(const bs_arg *args, const bs_dim3 *block, const bs_dim3 *grid, void *shared)
{
    const launch *of = (const launch *)args;
    if (!mine) mine = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
    span *s = &spans[(mine - 1) % THREADS][of->index % LAUNCHES];
    uint64_t from = now();
    ((kernel *)of->entry)((const bs_arg *)of->args, block, grid, shared);
    s->last = now();
    if (!s->blocks++) s->first = from;
    s->busy += s->last - from;
}
BS_EXPORT void clocked(const bs_arg *args, const bs_dim3 *block, const bs_dim3 *grid, void *shared)
{
    run(args, block, grid, shared);
}
BS_EXPORT void telling(const bs_arg *args, const bs_dim3 *block, const bs_dim3 *grid, void *shared)
{
    run(args, block, grid, shared);
}
BS_READS(telling)
{
    const launch *of = (const launch *)args;
    typedef int32_t reads(const bs_arg *, uint64_t, uint64_t, uint64_t, bs_range *, int32_t);
    return ((reads *)of->reads)((const bs_arg *)of->args, from, to, blocks, out, most);
}
"""
THREADS, LAUNCHES = 64, 4096
SPAN = np.dtype([(name, np.uint64) for name in ("first", "last", "busy", "blocks")])


@dataclass(frozen=True)
class Timed:
    """One launch of one step, in nanoseconds; `busy` and `blocks` are each thread's."""

    wall: int
    busy: tuple[int, ...]
    blocks: tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """One launch over all steps, in microseconds."""

    wall: float
    busy: float
    blocks: int

    @classmethod
    def of(cls, taken: Sequence[Timed]) -> Self:
        """The medians."""
        busy = median(sum(each.busy) / len(each.busy) for each in taken)
        return cls(median(each.wall for each in taken) / 1e3, busy / 1e3, sum(taken[0].blocks))


class Clock:
    """Replays launch lists with the clock read around every block."""

    def __init__(self, cache: Path) -> None:
        """Compile the entry that reads the clock."""
        source = cache / "clocked.c"
        source.write_text(CLOCKED)
        include = read_sources(read_sets()["cpu-generic"]).include
        unit = Unit((source,), ("-O2",), include=include)
        (path,) = compile_many([unit], cache=cache, compiler=find_compiler())
        self.library = ctypes.CDLL(str(path))
        self.entry = device.found(self.library, "clocked") or 0
        self.telling = device.found(self.library, "telling") or 0
        self.reads = device.found(self.library, "bs_reads_telling") or 0
        raw = (ctypes.c_uint8 * (THREADS * LAUNCHES * SPAN.itemsize)).in_dll(self.library, "spans")
        self.spans = np.ctypeslib.as_array(raw).view(SPAN).reshape(THREADS, LAUNCHES)
        self.library.name_of.restype = ctypes.c_char_p
        self.library.name_of.argtypes = [ctypes.c_void_p]
        self.names: list[str] = []
        self.steps: list[list[Timed]] = []
        self.plain = Replayer.replay
        self.asked: set[Replayer] = set()

    def stand_in(self) -> Callable[[Replayer, int, int, int, Sequence[Tap]], None]:
        """What a replayer is to have as its method `replay` meanwhile."""

        def replay(
            on: Replayer, launches: int, count: int, repeat: int, taps: Sequence[Tap]
        ) -> None:
            self.replay(on, launches, count, repeat, taps)

        return replay

    def replay(
        self, replayer: Replayer, launches: int, count: int, repeat: int, taps: Sequence[Tap]
    ) -> None:
        """Stands in for `Replayer.replay`; a list that is repeated is run step by step."""
        words = (ctypes.c_uint64 * (LAUNCH_WORDS * count)).from_address(launches)
        table = np.ctypeslib.as_array(words).reshape(count, LAUNCH_WORDS).copy()
        self.names = [self.library.name_of(int(entry)).decode() for entry in table[:, 0]]
        if replayer not in self.asked:
            self.asked.add(replayer)
            replayer.ask(self.telling, self.reads)
        reads = np.array([reads_of(name) for name in self.names], np.uint64)
        index = np.arange(count, dtype=np.uint64)
        records = np.ascontiguousarray(np.stack([table[:, 0], table[:, 1], index, reads], axis=1))
        table[:, 0] = np.where(reads > 0, self.telling, self.entry)
        table[:, 1] = records.ctypes.data + records.strides[0] * index
        for round_ in range(repeat):
            self.spans[:] = 0
            at = [Tap(tap.source, tap.sink + round_ * tap.nbytes, tap.nbytes) for tap in taps]
            self.plain(replayer, table.ctypes.data, count, 1, at)
            self.steps.append(timed(self.spans[:, :count]))


def reads_of(name: str) -> int:
    """The function that tells what an entry of a loaded module reads; 0 where none does."""
    return max(
        (device.found(library, f"bs_reads_{name}") or 0 for library in device.LOADED.values()),
        default=0,
    )


def timed(spans: NDArray[np.void]) -> list[Timed]:
    """What each launch took, from what each thread noted of it."""
    used = spans[spans["blocks"].sum(axis=1) > 0]
    ends = used["last"].max(axis=0).astype(np.int64)
    started = np.where(used["blocks"][:, 0] > 0, used["first"][:, 0], np.iinfo(np.uint64).max).min()
    walls = np.diff(ends, prepend=np.int64(started))
    return [
        Timed(int(wall), tuple(used["busy"][:, i].tolist()), tuple(used["blocks"][:, i].tolist()))
        for i, wall in enumerate(walls)
    ]


def main() -> None:
    """Read the command line, take the steps, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoint")
    parser.add_argument("--numerics", choices=("quantized", "precise"), default="quantized")
    parser.add_argument("--unfused", action="store_true", help="hold every rule of the lane back")
    parser.add_argument("--prompt", type=int, default=32, help="tokens before the steps")
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--sequences", type=int, default=1, help="rows of a step, one a sequence")
    parser.add_argument("--prefill", action="store_true", help="time the prompt, one chunk of it")
    parser.add_argument("--cache", type=Path, help="a folder that keeps compiled kernels")
    parser.add_argument("--each", action="store_true", help="every launch by itself")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        names, steps = measure(options, Path(folder))
    print("\n".join(lines(names, steps, each=options.each)))


def measure(options: argparse.Namespace, folder: Path) -> tuple[list[str], list[list[Timed]]]:
    """The step's entries, and what every launch of every step took."""
    with closing(open_checkpoint(options.checkpoint)) as opened:
        held = RULES if options.unfused else ()
        wanted = Options(options.numerics, held=held, sequences=options.sequences)
        request = Request(opened, wanted, options.cache or folder / "cache")
        package = compile_checkpoint(request, folder / "package", lambda _: None)
        tokens = options.sequences * package.lock.pages(options.prompt + options.steps + 9)
        count = options.sequences
        with load(package.path, tokens=tokens, sequences=count, checkpoint=opened) as session:
            clock = Clock(folder)
            with patch.object(Replayer, "replay", clock.stand_in()):
                take(session, options)
            return clock.names, clock.steps[-options.steps :]


def take(session: Session, options: argparse.Namespace) -> None:
    """The steps to time, the last that are taken: of decoding, or prompts fed again and again."""
    prompt = [1 + i % 97 for i in range(options.prompt)]
    if options.sequences > 1:
        prompts = [[1 + at, *prompt[1:]] for at in range(options.sequences)]
        for _ in session.generate_together(prompts, 8 + options.steps):
            pass
        return
    generator = Generator(session)
    if not options.prefill:
        generator.prefill(prompt)
        generator.advance(8)
        generator.advance(options.steps)
        return
    for _ in range(options.steps):
        generator.reset()
        generator.prefill(prompt)


def lines(names: list[str], steps: list[list[Timed]], *, each: bool) -> list[str]:
    """A line a kind of launch, or a launch; medians over the steps, in microseconds."""
    groups: dict[str, list[Row]] = {}
    for i, name in enumerate(names):
        key = f"{i}: {name}" if each else name
        groups.setdefault(key, []).append(Row.of([step[i] for step in steps]))
    whole = sum(row.wall for rows in groups.values() for row in rows)
    busy = sum(row.busy for rows in groups.values() for row in rows)
    if not each:
        groups = dict(sorted(groups.items(), key=lambda g: -sum(row.wall for row in g[1])))
    heads = ("launches", "blocks", "%", "wall", "busy", "lost")
    out = [f"{'entry':36}" + "".join(f"{head:>9}" for head in heads)]
    for key, rows in groups.items():
        wall, inside = sum(row.wall for row in rows), sum(row.busy for row in rows)
        means = (wall / len(rows), inside / len(rows), (wall - inside) / len(rows))
        cells = f"{len(rows):9}{rows[0].blocks:9}{100 * wall / whole:9.1f}"
        out.append(f"{key:36}{cells}" + "".join(f"{mean:9.2f}" for mean in means))
    lost = whole - busy
    return [*out, f"{len(names)} launches, {whole:.0f} us a step: {busy:.0f} busy, {lost:.0f} lost"]


if __name__ == "__main__":
    main()
