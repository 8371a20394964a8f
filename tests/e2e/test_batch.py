"""A row of each of several sequences in one step: bit for bit what each is alone."""

from collections.abc import Iterator

import numpy as np
import pytest

from bedstone.build.request import Package
from bedstone.runtime.load import load
from bedstone.runtime.session import Session
from bedstone.spec.package import MANIFEST
from packages import Fed, Together, compiled
from tiny_models import FAMILIES, IDS

pytestmark = pytest.mark.parametrize("tiny", FAMILIES, indirect=True)

PROMPTS = (IDS[:7], IDS[3:5], IDS[:1], IDS)
PAGES = ((2, 0), (5, 1), (4, 7), (3, 6))
FED = ((8, 3, 60, 1), (0, 44, 2, 9), (17, 5, 5, 30))
"""A token of each sequence for each step."""


@pytest.fixture
def package(tiny, cache, tmp_path) -> Package:
    many = len(PROMPTS)
    return compiled(
        str(tiny.checkpoint), tmp_path / "batch", cache, numerics="precise", sequences=many
    )


@pytest.fixture
def batch(package, cache) -> Iterator[Session]:
    with load(package.path, cache=cache, tokens=8 * 32, sequences=len(PROMPTS)) as session:
        yield session


def started(session: Session) -> Iterator[Fed]:
    """Each sequence after its prompt."""
    for i, (prompt, pages) in enumerate(zip(PROMPTS, PAGES, strict=True)):
        sequence = Fed(session, pages, slot=i + 1)
        sequence.feed(prompt)
        yield sequence


def alone(session: Session, steps: int) -> tuple[list[np.ndarray], list[dict[str, np.ndarray]]]:
    """Logits of each sequence by itself, fed and then going on; what each keeps."""
    logits, kept = [], []
    for i, sequence in enumerate(started(session)):
        made = [sequence.feed([step[i]], "decode") for step in FED]
        for _ in range(steps):
            made.append(sequence.feed([sequence.next()], "decode"))
        logits.append(np.stack(made))
        kept.append(sequence.cached())
    return logits, kept


def test_a_batch_is_its_sequences(batch):
    steps = 25
    expected, kept = alone(batch, steps)
    together = Together(list(started(batch)))
    made = [together.feed(tokens) for tokens in FED]
    made += [together.chain() for _ in range(steps)]
    for i, theirs in enumerate(expected):
        np.testing.assert_array_equal(np.stack(made)[:, i], theirs, err_msg=f"sequence {i}")
    for sequence, theirs in zip(together.sequences, kept, strict=True):
        for name, rows in sequence.cached().items():
            np.testing.assert_array_equal(rows, theirs[name], err_msg=name)


def test_the_reference_reader_accepts_batches(package, reference):
    answer = reference.ask((package.path / MANIFEST).read_text())
    assert answer.messages == ()
    assert answer.accepted
