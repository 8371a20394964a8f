"""`bedstone serve` and llama-cpp-python's server on one GGUF file and this machine's cores.

    python benchmarks/serve.py MODEL.gguf [--clients 8] > measurements/DATE-cpu-serve.json

Both servers run at once, each idle while the other is loaded: `bedstone bench serve` sends them the
same requests in turns, greedy and streamed. Ours gets the defaults but for `--clients` sequences a
step; llama.cpp as many threads, and a context for the longest request. Both answer with text; what
they say is compared by its length only. See `llama_cpp.py` for how the peer is built.
"""

import argparse
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from urllib.error import URLError
from urllib.request import urlopen

from sides import OURS, PEER, THEIRS, built_peer, machine, parsed, parser

BEDSTONE = [sys.executable, "-c", "from bedstone.cli import main; main()"]
PATIENCE = 300
CONTEXT = 2048


def main() -> None:
    """Start both servers, load them in turns, print the record."""
    found = parser(__doc__)
    found.add_argument("--clients", type=int, default=8)
    found.add_argument("--requests", type=int, default=48, help="to each server, a round")
    found.add_argument("--words", default="16-96")
    found.add_argument("--tokens", default="64-128")
    options = parsed(found)
    with ExitStack() as running:
        urls = [running.enter_context(served(command)) for command in servers(options)]
        load = ["--clients", str(options.clients), "--requests", str(options.requests)]
        spans = ["--words", options.words, "--tokens", options.tokens]
        command = ["bench", "serve", *urls, *load, *spans, "--rounds", str(options.rounds)]
        done = subprocess.run([*BEDSTONE, *command, "--json"], check=True, stdout=subprocess.PIPE)
    measured = json.loads(done.stdout)
    for side, name in zip(measured["servers"], (OURS, THEIRS), strict=True):
        side["server"] = name
        # the peer calls its model by the file's path
        del side["url"], side["model"]
    record = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "model": options.model.name,
        "peer": PEER,
        "threads": options.threads,
        **measured,
    }
    print(json.dumps(record, indent=1))


def servers(options: argparse.Namespace) -> list[list[str]]:
    """How each server is started, but for its port."""
    peer = options.peer_python or built_peer(options.cache)
    threads = str(options.threads)
    ours = ["serve", str(options.model), "--threads", threads]
    theirs = [str(peer), "-m", "llama_cpp.server", "--model", str(options.model)]
    # else each request cuts the answer of the one before short
    theirs += ["--interrupt_requests", "false", "--n_ctx", str(CONTEXT)]
    return [
        [*BEDSTONE, *ours, "--sequences", str(options.clients)],
        [*theirs, "--n_threads", threads, "--n_threads_batch", threads],
    ]


@contextmanager
def served(command: Sequence[str]) -> Iterator[str]:
    """The URL of a server while it runs."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.DEVNULL)
    try:
        _wait(url, process)
        yield url
    finally:
        process.terminate()
        process.wait()


def _wait(url: str, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        try:
            with urlopen(f"{url}/v1/models", timeout=5):  # noqa: S310 - our own address
                return
        except (URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"`{process.args!r}` does not answer")


if __name__ == "__main__":
    main()
