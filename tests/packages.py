"""Checkpoints compiled for tests, and one sequence fed through a loaded package by hand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bedstone.build.compile import compile_checkpoint
from bedstone.build.request import Options, Package, Request
from bedstone.checkpoint.reference import open_checkpoint
from bedstone.runtime.session import Session

PAGE = 32


def compiled(
    reference: str, out: Path, cache: Path, target: str = "auto", **options: Any
) -> Package:
    """Compile `reference` into `out` with kernels cached under `cache`."""
    opened = open_checkpoint(reference)
    try:
        request = Request(opened, Options(**options), cache, target)
        return compile_checkpoint(request, out, lambda _: None)
    finally:
        opened.close()


class Fed:
    """One sequence of a session; `pages` is the order in which it takes the pool's pages."""

    def __init__(self, session: Session, pages: Sequence[int]) -> None:
        self.session = session
        self.pages = np.array(pages, np.int32)
        self.length = 0
        width = session.manifest.buffers["pages"].shape[1]
        row = np.full(int(width), self.pages[0], np.int32)
        row[: len(pages)] = self.pages[: int(width)]
        session.write("pages", row)

    def feed(self, ids: Sequence[int], program: str = "prefill") -> np.ndarray:
        """Logits [vocab] after the rows of one call."""
        at = np.arange(self.length, self.length + len(ids), dtype=np.int32)
        self.session.write("token", np.array(ids, np.int32))
        self.session.write("position", at)
        self.session.write("slot", self.slots(at))
        if program == "prefill":
            self.session.run(program, tokens=len(ids))
        else:
            self.session.run(program)
        self.length += len(ids)
        return self.logits()

    def chain(self) -> np.ndarray:
        """Logits [vocab] of a step that takes everything from the step before it."""
        self.session.run("decode_chain")
        self.length += 1
        return self.logits()

    def logits(self) -> np.ndarray:
        return self.session.read("logits").reshape(-1).copy()

    def next(self) -> int:
        return int(self.session.read("next").flat[0])

    def slots(self, positions: np.ndarray) -> np.ndarray:
        return (self.pages[positions // PAGE] * PAGE + positions % PAGE).astype(np.int32)

    def cached(self) -> dict[str, np.ndarray]:
        """Each state's rows of this sequence [length, bytes a token]."""
        rows = self.slots(np.arange(self.length, dtype=np.int32))
        return {
            name: self.session.region(name).reshape(-1, state.bytes_per_token)[rows]
            for name, state in self.session.manifest.states.items()
        }
