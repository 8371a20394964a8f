"""Bedstone and llama.cpp on one GGUF file and this machine's cores, side by side.

    python benchmarks/llama_cpp.py MODEL.gguf [--json] > measurements/DATE-cpu-llama-cpp.json

llama.cpp comes as `llama-cpp-python` from PyPI, built from source for this machine in an
environment of its own under `--cache`; that takes a quarter of an hour of one core. Each side lives
in a process of its own, with as many threads, and answers in turn: a round is the memory's read
rate, then each side's prefills and its decode, the other side first every second round. llama.cpp
is there twice, with flash attention and without; a ratio is over the better of its medians.

Both get the same token ids, take the most likely token and make no text. `first` is the time from
the start of a process to its first token, Bedstone's package compiled before; `peak` the most
memory a process held, pages of mapped files included. What is compared is greedy and may differ in
the last bits: `agree` says how many first tokens of the two are the same.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

PEER = "llama-cpp-python==0.3.36"
SIDES = ("bedstone", "llama.cpp", "llama.cpp without flash attention")
WORKERS = Path(__file__).with_name("workers")
PREFILLS = (128, 512, 2048)
LEAST_ROUNDS = 5


class Side:
    """One engine in a process of its own: a command in, what it measured out."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start the process; it is ready when it has answered once."""
        began = perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.tokens = self.ask("prefill", 32, 1)["tokens"]
        self.first = perf_counter() - began

    def ask(self, what: str, *numbers: int) -> dict[str, Any]:
        """One command's answer."""
        stdin, stdout = self.process.stdin, self.process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the process has no pipes")
        stdin.write((json.dumps([what, *numbers]) + "\n").encode())
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise RuntimeError(f"`{self.process.args!r}` ended with {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()


def built_peer(cache: Path) -> Path:
    """The Python of an environment that has llama.cpp, built here if it is not there."""
    folder = cache / "llama-cpp"
    python = folder / "bin" / "python"
    if not (folder / "done").exists():
        venv.create(folder, with_pip=True, clear=True)
        switches = ["-DGGML_NATIVE=ON", "-DLLAVA_BUILD=OFF", "-DMTMD_BUILD=OFF", *_gcc_fix()]
        install = [str(python), "-m", "pip", "install", "--no-binary", "llama-cpp-python", PEER]
        given = ["env", f"CMAKE_ARGS={' '.join(switches)}", *install]
        subprocess.run(given, check=True, stdout=sys.stderr)
        (folder / "done").touch()
    return python


def _gcc_fix() -> list[str]:
    """GCC 12 drops the store of a tile configuration, and AMX then ends the process."""
    answer = subprocess.run(["cc", "-dumpversion"], capture_output=True, text=True, check=True)
    tiles = " amx_int8" in Path("/proc/cpuinfo").read_text()
    fix = "-fno-tree-dse"
    old = tiles and answer.stdout.split(".")[0].strip() == "12"
    return [f"-DCMAKE_C_FLAGS={fix}", f"-DCMAKE_CXX_FLAGS={fix}"] if old else []


def commands(options: argparse.Namespace) -> dict[str, list[str]]:
    """How each side's process is started."""
    peer = options.peer_python or built_peer(options.cache)
    most = max(options.prefills) + options.steps + 64
    shared = [str(options.model), str(options.threads), str(most)]
    ours = [sys.executable, str(WORKERS / "of_bedstone.py"), *shared, str(_package(options))]
    theirs = [str(peer), str(WORKERS / "of_llama_cpp.py"), *shared]
    return {SIDES[0]: ours, SIDES[1]: [*theirs, "1"], SIDES[2]: [*theirs, "0"]}


def _package(options: argparse.Namespace) -> Path:
    folder: Path = options.cache / f"{options.model.stem}-package"
    return folder


def compiled(options: argparse.Namespace) -> int:
    """Compile Bedstone's package of the model; bytes a step of it moves."""
    command = [sys.executable, WORKERS / "compile_bedstone.py", options.model, _package(options)]
    kernels = options.cache / "kernels"
    answer = subprocess.run([*command, kernels], check=True, stdout=subprocess.PIPE)
    moved: int = json.loads(answer.stdout)["step_bytes"]
    return moved


def read_rate(options: argparse.Namespace) -> float:
    """Bytes a second that the threads read together from 512 MiB of memory."""
    program = options.cache / "read_rate"
    if not program.exists():
        flags = ["-O3", "-march=native", "-pthread", "-o", str(program)]
        subprocess.run(["cc", *flags, str(WORKERS / "read_rate.c")], check=True)
    answer = subprocess.run(
        [program, str(options.threads)], capture_output=True, text=True, check=True
    )
    return float(answer.stdout)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run all rounds; the record of them."""
    starts = commands(options)
    step_bytes = compiled(options)
    seen: dict[str, dict[str, list[float]]] = {name: {} for name in SIDES}
    rates: list[float] = []
    tokens: dict[str, list[int]] = {}
    for number in range(options.rounds):
        for name in _in_turn(number):
            side = Side(starts[name])
            seen[name].setdefault("first", []).append(side.first)
            side.close()
    sides = {name: Side(starts[name]) for name in SIDES}
    for number in range(-1, options.rounds):
        rates.append(read_rate(options))
        for name in _in_turn(number):
            tokens[name] = _round(sides[name], options, seen[name] if number >= 0 else {})
    for name, side in sides.items():
        seen[name]["peak"] = [side.ask("peak")["bytes"]]
        side.close()
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": {"cpu": _cpu(), "cores": os.cpu_count(), "kernel": platform.release()},
        "model": options.model.name,
        "threads": options.threads,
        "rounds": options.rounds,
        "peer": PEER,
        "read_bytes_per_second": median(rates),
        "step_bytes": step_bytes,
        "agree": _agreeing(*(tokens[name] for name in SIDES[:2])),
        "sides": {name: _medians(values) for name, values in seen.items()},
        **ratios(seen, step_bytes / median(rates)),
    }


def _in_turn(number: int) -> Sequence[str]:
    return SIDES if number % 2 else SIDES[::-1]


def _round(side: Side, options: argparse.Namespace, seen: dict[str, list[float]]) -> list[int]:
    """One side's turn: rates in tokens a second. The tokens it decoded."""
    for length in options.prefills:
        answer = side.ask("prefill", length, 0)
        seen.setdefault(f"prefill{length}", []).append(length / answer["seconds"])
    side.ask("prefill", 128, 0)
    answer = side.ask("decode", options.steps)
    seen.setdefault("decode", []).append(options.steps / answer["seconds"])
    taken: list[int] = answer["tokens"]
    return taken


def _medians(values: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    return {
        what: {"median": median(of), "rounds": [float(f"{value:.4g}") for value in of]}
        for what, of in values.items()
    }


def ratios(seen: Mapping[str, Mapping[str, Sequence[float]]], limit: float) -> dict[str, float]:
    """Ours over theirs, the better of theirs; `limit` is seconds a step at the read rate."""
    ours, *theirs = (seen[name] for name in SIDES)
    found: dict[str, float] = {}
    for what in ours:
        best: Callable[..., float] = min if what in ("first", "peak") else max
        found[f"{what}_ratio"] = median(ours[what]) / best(median(of[what]) for of in theirs)
    found["decode_of_read_rate"] = median(ours["decode"]) * limit
    found["peer_decode_of_read_rate"] = max(median(of["decode"]) for of in theirs) * limit
    return found


def _agreeing(a: Sequence[int], b: Sequence[int]) -> int:
    """How many first tokens are the same."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y), len(a))


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def lines(record: Mapping[str, Any]) -> list[str]:
    """The record for a person."""
    sides = record["sides"]
    out = [f"{'':14}" + "".join(f"{name[:18]:>20}" for name in SIDES) + f"{'ratio':>9}"]
    for what in sides[SIDES[0]]:
        values = "".join(f"{sides[name][what]['median']:20.4g}" for name in SIDES)
        out.append(f"{what:14}{values}{record[f'{what}_ratio']:9.3f}")
    rate = record["read_bytes_per_second"] / 1e9
    ours, theirs = record["decode_of_read_rate"], record["peer_decode_of_read_rate"]
    out.append(
        f"reads {rate:.1f} GB/s; decode is at {ours:.0%} of that, the peer's at {theirs:.0%}"
    )
    out.append(f"the first {record['agree']} tokens agree; {record['rounds']} rounds")
    return out


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--cache", type=Path, default=Path("~/.cache/bedstone-benchmarks"))
    parser.add_argument("--peer-python", type=Path, help="an environment that has llama.cpp")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--prefills", type=int, nargs="+", default=PREFILLS)
    parser.add_argument("--steps", type=int, default=128, help="tokens to decode")
    parser.add_argument("--rounds", type=int, default=LEAST_ROUNDS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.cache = options.cache.expanduser()
    options.cache.mkdir(parents=True, exist_ok=True)
    record = measure(options)
    print(json.dumps(record, indent=1) if options.json else "\n".join(lines(record)))


if __name__ == "__main__":
    main()
