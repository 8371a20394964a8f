"""Sequences decoded together held against each of them decoded alone."""

from collections.abc import Iterator, Sequence

import numpy as np

from bedstone.runtime.session import Session
from packages import Fed, Together

PAGES = 2
"""Pages of a sequence."""


def fed(session: Session, prompts: Sequence[Sequence[int]]) -> Iterator[Fed]:
    """Each sequence after its prompt, in pages that lie anywhere."""
    pages = np.random.default_rng(2).permutation(PAGES * len(prompts)).reshape(-1, PAGES)
    for i, prompt in enumerate(prompts):
        sequence = Fed(session, pages[i], slot=i + 1)
        sequence.feed(prompt)
        yield sequence


def require_same_together(session: Session, prompts: Sequence[Sequence[int]], steps: int) -> None:
    """A fed step and `steps` chained ones: the same bits of logits, and left behind."""
    expected, kept, firsts = [], [], []
    for sequence in fed(session, prompts):
        firsts.append(sequence.next())
        logits = [sequence.feed(firsts[-1:], "decode"), *(sequence.chain() for _ in range(steps))]
        expected.append(np.stack(logits))
        kept.append(sequence.cached())
    together = Together(list(fed(session, prompts)))
    made = np.stack([together.feed(firsts), *(together.chain() for _ in range(steps))])
    for i, sequence in enumerate(together.sequences):
        np.testing.assert_array_equal(made[:, i], expected[i], err_msg=f"sequence {i}")
        for name, rows in sequence.cached().items():
            np.testing.assert_array_equal(rows, kept[i][name], err_msg=f"sequence {i}, {name}")
