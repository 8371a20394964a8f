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
    """One sequence of a session: its pages in the order it takes them, and its slot."""

    def __init__(self, session: Session, pages: Sequence[int], slot: int = 1) -> None:
        self.session = session
        self.slot = slot
        self.pages = np.array(pages, np.int32)
        self.length = 0
        session.write("pages", self.table())
        if "line" in session.manifest.buffers:
            session.write("line", np.array([slot], np.int32))

    def table(self) -> np.ndarray:
        """The sequence's row of the page table; what it will not reach names its first page."""
        width = int(self.session.manifest.buffers["pages"].shape[1])
        row = np.full(width, self.pages[0], np.int32)
        row[: len(self.pages)] = self.pages[:width]
        return row

    def feed(self, ids: Sequence[int], program: str = "prefill") -> np.ndarray:
        """Logits [vocab] after the rows of one call."""
        at = np.arange(self.length, self.length + len(ids), dtype=np.int32)
        self.session.write("token", np.array(ids, np.int32))
        self.session.write("position", at)
        self.session.write("slot", self.slots(at))
        self.length += len(ids)
        self.session.run(program, **self.sizes(len(ids)) if program == "prefill" else {})
        return self.logits()

    def sizes(self, rows: int) -> dict[str, int]:
        """The vars of a call of so many rows; a length only where the manifest asks for it."""
        lengths = {"length": self.length} if "length" in self.session.manifest.vars else {}
        return {"tokens": rows, **lengths}

    def chain(self) -> np.ndarray:
        """Logits [vocab] of a step that takes everything from the step before it."""
        self.session.run("decode_chain")
        self.length += 1
        return self.logits()

    def logits(self) -> np.ndarray:
        return self.session.read("logits")[0]

    def next(self) -> int:
        return int(self.session.read("next").flat[0])

    def slots(self, positions: np.ndarray) -> np.ndarray:
        return (self.pages[positions // PAGE] * PAGE + positions % PAGE).astype(np.int32)

    def cached(self) -> dict[str, np.ndarray]:
        """What each state holds of this sequence: rows [length, width], or its line."""
        rows = self.slots(np.arange(self.length, dtype=np.int32))
        found = {}
        for name, state in self.session.manifest.states.items():
            width = state.bytes_per_token or state.bytes_per_seq
            whole = self.session.region(name).reshape(-1, width)
            own = whole[rows if state.bytes_per_token else [self.slot]]
            found[name] = own.view(np.float32)
        return found


class Together:
    """Several sequences of a session, a row of each in every call."""

    def __init__(self, sequences: Sequence[Fed]) -> None:
        self.sequences = sequences
        self.session = sequences[0].session
        self.session.write("pages", np.stack([fed.table() for fed in sequences]))
        if "line" in self.session.manifest.buffers:
            self.session.write("line", np.array([fed.slot for fed in sequences], np.int32))

    def feed(self, tokens: Sequence[int]) -> np.ndarray:
        """Logits [sequences, vocab] after a token of each."""
        at = np.array([fed.length for fed in self.sequences], np.int32)
        slots = [fed.slots(at[i]) for i, fed in enumerate(self.sequences)]
        self.session.write("token", np.array(tokens, np.int32))
        self.session.write("position", at)
        self.session.write("slot", np.array(slots, np.int32))
        return self.run("decode_many")

    def chain(self) -> np.ndarray:
        """Logits of a step that takes everything from the step before it."""
        return self.run("decode_many_chain")

    def run(self, program: str) -> np.ndarray:
        self.session.run(program, seqs=len(self.sequences))
        for fed in self.sequences:
            fed.length += 1
        return self.session.read("logits")[: len(self.sequences)]
