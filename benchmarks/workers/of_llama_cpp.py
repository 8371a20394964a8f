"""Answers the benchmarks' commands with llama.cpp: MODEL THREADS TOKENS FLASH_ATTENTION."""

import ctypes
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import llama_cpp
import numpy as np
from numpy.typing import NDArray

PROMPT = 31
BATCH = 512


class Engine:
    """One sequence on a context of llama.cpp, by its C calls."""

    def __init__(self, path: str, threads: int, tokens: int, flash: int) -> None:
        """Load the file for `tokens` tokens."""
        llama_cpp.llama_backend_init()
        self.model = llama_cpp.llama_model_load_from_file(
            path.encode(), llama_cpp.llama_model_default_params()
        )
        wanted = llama_cpp.llama_context_default_params()
        wanted.n_ctx = tokens
        wanted.n_batch = wanted.n_ubatch = BATCH
        wanted.n_threads = wanted.n_threads_batch = threads
        wanted.flash_attn_type = flash
        self.context = llama_cpp.llama_init_from_model(self.model, wanted)
        vocabulary = llama_cpp.llama_model_get_vocab(self.model)
        self.vocab = llama_cpp.llama_vocab_n_tokens(vocabulary)
        self.next = 0

    def feed(self, tokens: Sequence[int]) -> int:
        """Go on with `tokens`; the most likely token after them."""
        for at in range(0, len(tokens), BATCH):
            some = tokens[at : at + BATCH]
            ids = (llama_cpp.llama_token * len(some))(*some)
            status = llama_cpp.llama_decode(
                self.context, llama_cpp.llama_batch_get_one(ids, len(some))
            )
            if status:
                raise RuntimeError(f"llama_decode: {status}")
        self.next = int(np.argmax(self.logits()))
        return self.next

    def logits(self) -> NDArray[np.float32]:
        """Those after the last token fed [vocab], where they lie."""
        logits = llama_cpp.llama_get_logits_ith(self.context, -1)
        row = ctypes.cast(logits, ctypes.POINTER(ctypes.c_float * self.vocab)).contents
        return np.frombuffer(row, np.float32)

    def reset(self) -> None:
        """Forget the sequence."""
        keep_data = False
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), keep_data)


def logits(engine: Engine, path: str, *ids: int) -> list[int]:
    """Write the logits after each of `ids` to a file; the most likely tokens."""
    engine.reset()
    rows, tokens = [], []
    for token in ids:
        tokens.append(engine.feed([token]))
        rows.append(engine.logits().copy())
    np.save(path, np.stack(rows))
    return tokens


def answers(engine: Engine) -> Iterator[dict[str, Any]]:
    """What each command of the input comes to."""
    for line in sys.stdin:
        what, *numbers = json.loads(line)
        began = perf_counter()
        if what == "prefill":
            engine.reset()
            tokens = [engine.feed([1 + i * PROMPT % 997 for i in range(numbers[0])])]
        elif what == "extend":
            tokens = [engine.feed([1 + i * PROMPT % 997 for i in range(numbers[0])])]
        elif what == "decode":
            tokens = [engine.feed([engine.next]) for _ in range(numbers[0])]
        elif what == "logits":
            tokens = logits(engine, *numbers)
        else:
            status = Path("/proc/self/status").read_text()
            yield {"bytes": 1024 * int(status.partition("VmHWM:")[2].split()[0])}
            continue
        yield {"seconds": perf_counter() - began, "tokens": tokens}


def main() -> None:
    """Load, then answer until the input ends."""
    path, *numbers = sys.argv[1:]
    for answer in answers(Engine(path, *(int(number) for number in numbers))):
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
