"""Reported cases about caches and repeatability, on whole packages."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from bedstone.errors import CallerError
from bedstone.runtime.generate import Generator
from bedstone.runtime.load import load
from bedstone.runtime.session import Session
from letters import write_tokenizer
from packages import PAGE, Fed, Together, compiled
from tiny_models import LONG, write_tiny

SEQUENCES = 8
CHUNK = 4


@pytest.fixture(scope="module", params=["qwen3", "gemma3-capped", "deepseek-v3", "qwen3.5"])
def package(request, tmp_path_factory, cache):
    folder = tmp_path_factory.mktemp(request.param)
    write_tiny(request.param, folder / "checkpoint")
    write_tokenizer(folder / "checkpoint")
    return compiled(str(folder / "checkpoint"), folder / "package", cache, sequences=SEQUENCES)


@pytest.fixture
def session(package, cache) -> Iterator[Session]:
    tokens = 2 * PAGE * SEQUENCES
    with load(package.path, cache=cache, tokens=tokens, sequences=SEQUENCES) as loaded:
        yield loaded


@pytest.mark.parametrize(
    ("buffer", "value", "most"),
    [("position", -1, 63), ("position", 64, 63), ("pages", -1, 15), ("pages", 16, 15)],
)
def test_d02_where_a_sequence_ends_is_checked_and_not_computed(session, buffer, value, most):
    """Positions say it here: there is no length of a last page to get wrong."""
    with pytest.raises(CallerError, match=rf"`{buffer}`.* {value}.*0.*{most}"):
        session.write(buffer, np.array([value], np.int32))


@pytest.mark.parametrize("length", [3, 4, 5, 8, 9])
def test_d08_chunks_neither_change_nor_add_tokens(session, launched_rows, length):
    """Around multiples of the chunk; no token comes before the last chunk is in."""
    whole = list(Generator(session).generate(LONG[:length], 4))
    assert len(whole) == 4
    launched_rows.clear()
    generator = Generator(session)
    first = generator.prefill(LONG[:length], chunk=CHUNK)
    fed = [CHUNK] * (length // CHUNK) + [length % CHUNK] * (length % CHUNK > 0)
    assert launched_rows == fed
    assert [first, *generator.advance(3)] == whole


@pytest.fixture
def launched_rows(session, monkeypatch) -> list[int]:
    """The rows of each call of the chunk program, in order."""
    rows, start = [], session.start

    def noting(program: str, *arguments: object, **given: int):
        if program == "prefill":
            rows.append(given["tokens"])
        return start(program, *arguments, **given)

    monkeypatch.setattr(session, "start", noting)
    return rows


def test_d10_a_row_of_a_batch_is_the_sequence_alone(session):
    """As row 0, 3 and 7 of eight different prompts."""
    prompt, pages = LONG[3:20], np.arange(2 * SEQUENCES).reshape(SEQUENCES, 2)
    alone = Fed(session, pages[5], slot=6)
    alone.feed(prompt)
    tokens = [alone.next()]
    expected = []
    for _ in range(5):
        expected.append(alone.feed(tokens[-1:], "decode"))
        tokens.append(alone.next())
    for row in (0, 3, 7):
        prompts = [LONG[i : 2 * i + 5] for i in range(SEQUENCES - 1)]
        prompts.insert(row, prompt)
        made = together(session, prompts, pages, 5)
        np.testing.assert_array_equal(made[:, row], expected, err_msg=f"row {row}")


def together(
    session: Session, prompts: Sequence[Sequence[int]], pages: np.ndarray, steps: int
) -> np.ndarray:
    """Logits [steps, sequences, vocab] of prompts that go on together, greedily."""
    sequences, firsts = [], []
    for i, prompt in enumerate(prompts):
        sequences.append(Fed(session, pages[i], slot=i + 1))
        sequences[i].feed(prompt)
        firsts.append(sequences[i].next())
    batch = Together(sequences)
    return np.stack([batch.feed(firsts), *(batch.chain() for _ in range(steps - 1))])


@pytest.mark.parametrize("package", ["qwen3", "gemma3-capped", "deepseek-v3"], indirect=True)
def test_d11_a_prefix_another_sequence_left_gives_the_same_bits(session):
    """Its page is read, and rows go on behind it, cut where they are without it."""
    cold = Fed(session, (4, 9))
    for start, end in ((0, PAGE), (PAGE, 36), (36, 40)):
        expected = cold.feed(LONG[start:end])
    tokens = [cold.next()]
    warm = Fed(session, (4, 2), slot=2)
    warm.length = PAGE
    for start, end in ((PAGE, 36), (36, 40)):
        made = warm.feed(LONG[start:end])
    np.testing.assert_array_equal(made, expected)
    went_on = [warm.next()]
    for _ in range(15):
        warm.chain()
        went_on.append(warm.next())
    again = Fed(session, (4, 9))
    again.length = 40
    for _ in range(15):
        again.feed(tokens[-1:], "decode")
        tokens.append(again.next())
    assert went_on == tokens
