"""FlashInfer-Bench's source distribution, from PyPI: its definitions, workloads, tests and code."""

import fcntl
import subprocess
import sys
import tarfile
from pathlib import Path

RELEASE = "flashinfer-bench==0.1.2"
FOLDER = "flashinfer_bench-0.1.2"


def source_distribution(cache: Path) -> Path:
    """The unpacked distribution, downloaded once into `cache` however many processes ask."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        unpacked = cache / FOLDER
        if not unpacked.exists():
            _download(cache)
            with tarfile.open(cache / f"{FOLDER}.tar.gz") as archive:
                archive.extractall(cache, filter="data")
    return unpacked


def _download(cache: Path) -> None:
    # pip reads a source distribution's metadata by its build backend, which it fetches itself
    only_source = ["--no-deps", "--no-binary", "flashinfer-bench"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", *only_source, RELEASE]
    done = subprocess.run(
        [*command, "--dest", str(cache)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
