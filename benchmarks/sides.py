"""Engines in processes of their own, asked in turn: what the benchmarks beside this file share."""

import argparse
import compileall
import json
import os
import platform
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

PEER = "llama-cpp-python[server]==0.3.36"
OURS, THEIRS = "bedstone", "llama.cpp"
THEIRS_PLAIN = "llama.cpp without flash attention"
WORKERS = Path(__file__).with_name("workers")
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

    def ask(self, what: str, *given: int | str) -> dict[str, Any]:
        """One command's answer."""
        stdin, stdout = self.process.stdin, self.process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the process has no pipes")
        stdin.write((json.dumps([what, *given]) + "\n").encode())
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


def parser(text: str | None) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    found = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("model", type=Path)
    found.add_argument("--cache", type=Path, default=Path("~/.cache/bedstone-benchmarks"))
    found.add_argument("--peer-python", type=Path, help="an environment that has llama.cpp")
    found.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    found.add_argument("--rounds", type=int, default=LEAST_ROUNDS)
    found.add_argument("--json", action="store_true")
    return found


def parsed(options: argparse.ArgumentParser) -> argparse.Namespace:
    """The command line, its cache directory made."""
    given = options.parse_args()
    given.cache = given.cache.expanduser()
    given.cache.mkdir(parents=True, exist_ok=True)
    return given


def commands(options: argparse.Namespace, tokens: int) -> dict[str, list[str]]:
    """How each side's process is started, to hold that many tokens."""
    peer = options.peer_python or built_peer(options.cache)
    shared = [str(options.model), str(options.threads), str(tokens)]
    theirs = [str(peer), str(WORKERS / "of_llama_cpp.py"), *shared]
    return {
        OURS: our_command(options, tokens, _package(options, "quantized")),
        THEIRS: [*theirs, "1"],
        THEIRS_PLAIN: [*theirs, "0"],
    }


def our_command(options: argparse.Namespace, tokens: int, package: Path) -> list[str]:
    """How Bedstone's process is started on a package."""
    shared = [str(options.model), str(options.threads), str(tokens)]
    worker, kernels = str(WORKERS / "of_bedstone.py"), str(options.cache / "kernels")
    return [sys.executable, worker, *shared, str(package), kernels]


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


def _package(options: argparse.Namespace, numerics: str) -> Path:
    end = "" if numerics == "quantized" else f"-{numerics}"
    folder: Path = options.cache / f"{options.model.stem}-package{end}"
    return folder


def compiled(
    options: argparse.Namespace, numerics: str = "quantized"
) -> tuple[Path, dict[str, int]]:
    """Compile a package of the model: where it is, and what bytes a step of it moves.

    Bedstone's own modules are compiled too, as they are where it is installed.
    """
    package = _package(options, numerics)
    command = [sys.executable, WORKERS / "compile_bedstone.py", options.model, package]
    kernels = options.cache / "kernels"
    answer = subprocess.run([*command, kernels, numerics], check=True, stdout=subprocess.PIPE)
    moved: dict[str, Any] = json.loads(answer.stdout)
    compileall.compile_dir(moved.pop("sources"), quiet=2)
    return package, moved


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


def machine() -> dict[str, Any]:
    """What it was measured on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    cpu = next(names, platform.machine())
    return {"cpu": cpu, "cores": os.cpu_count(), "kernel": platform.release()}


def medians(values: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Of each figure its median, and what it is the median of."""
    return {
        what: {"median": median(of), "rounds": [float(f"{value:.4g}") for value in of]}
        for what, of in values.items()
    }
