"""Whole packages of tiny random models: logits, chunking, chaining, repeatability."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from bedstone.lane.plan import RULES
from bedstone.models import FAMILIES as ARCHITECTURES
from bedstone.runtime.load import load
from bedstone.spec.package import KERNELS, LOCK, MANIFEST, PLAN
from packages import Fed, compiled
from tiny_models import FAMILIES, IDS, LONG, MODELS

SPLITS: tuple[tuple[int, ...], ...] = ((12,), (5, 7), (1,) * 12, (3, 1, 1, 7))


families = pytest.mark.parametrize("tiny", FAMILIES, indirect=True)


@pytest.fixture
def fed(tiny, cache) -> Iterator:
    with load(tiny.package.path, cache=cache, tokens=96) as session:
        yield lambda pages=(2, 0, 1), slot=1: Fed(session, pages, slot)


def pieces(sizes: Sequence[int]) -> Iterator[Sequence[int]]:
    at = 0
    for size in sizes:
        yield IDS[at : at + size]
        at += size


def test_each_architecture_is_among_the_families():
    assert {f"{MODELS[name][0]}ForCausalLM" for name in FAMILIES} == ARCHITECTURES.keys()


def test_logits_agree_with_transformers_step_by_step(fed, tiny):
    """Past a page, and past every window and ring."""
    sequence = fed()
    ours = np.stack([sequence.feed([token], "decode") for token in LONG])
    assert np.abs(ours - tiny.theirs).max() < 1e-4 * np.abs(tiny.theirs).max()


@pytest.mark.parametrize("sizes", [(33, 12), (1, 31, 2, 11), (32, 13)])
def test_logits_agree_with_transformers_chunk_by_chunk(fed, tiny, sizes):
    """Borders before, on and after the end of a page."""
    sequence, ends = fed(), np.cumsum(sizes)
    ours = [sequence.feed(LONG[end - size : end]) for end, size in zip(ends, sizes, strict=True)]
    theirs = tiny.theirs[ends - 1]
    assert np.abs(np.stack(ours) - theirs).max() < 1e-4 * np.abs(theirs).max()


def test_any_chunking_leaves_the_same_bytes(fed):
    whole = fed()
    logits, cached = whole.feed(IDS), whole.cached()
    for sizes in SPLITS:
        sequence = fed(pages=(1, 2, 0), slot=2)
        for piece in pieces(sizes):
            last = sequence.feed(piece)
        np.testing.assert_array_equal(last, logits)
        for name, rows in sequence.cached().items():
            np.testing.assert_array_equal(rows, cached[name], err_msg=name)


def test_steps_of_one_row_leave_what_a_chunk_does(fed, tiny):
    chunk = fed()
    wanted = {"logits": chunk.feed(IDS), **chunk.cached()}
    alone = fed(pages=(1, 2, 0), slot=2)
    logits = [alone.feed([token], "decode") for token in IDS][-1]
    for name, made in {"logits": logits, **alone.cached()}.items():
        near = 1e-5 * np.abs(wanted[name]).max() if tiny.latent else 0
        np.testing.assert_allclose(made, wanted[name], rtol=0, atol=near, err_msg=name)


def test_a_chain_goes_on_as_fed_steps_do(fed):
    told = fed()
    expected, tokens = [told.feed(IDS)], [told.next()]
    for _ in range(30):
        expected.append(told.feed([tokens[-1]], "decode"))
        tokens.append(told.next())
    chained = fed(pages=(0, 2, 1))
    ours = [chained.feed(IDS), *(chained.chain() for _ in range(30))]
    np.testing.assert_array_equal(np.stack(ours), np.stack(expected))
    run = chained.session.read("run")
    assert run[len(IDS) : len(IDS) + 31].tolist() == tokens


@families
def test_rules_held_back_change_no_bit(fed, tiny, cache, tmp_path):
    """Each op of the graph by a kernel of its own, on the device: all fusions at once."""
    package = compiled(
        str(tiny.checkpoint), tmp_path / "apart", cache, numerics="precise", held=RULES
    )
    fused = fed()
    expected = {"chunk": fused.feed(IDS[:7])}
    for token in IDS[7:]:
        expected["steps"] = fused.feed([token], "decode")
    expected |= fused.cached()
    with load(package.path, cache=cache, tokens=96) as session:
        apart = Fed(session, (1, 2, 0), slot=2)
        made = {"chunk": apart.feed(IDS[:7])}
        for token in IDS[7:]:
            made["steps"] = apart.feed([token], "decode")
        made |= apart.cached()
    for name, value in expected.items():
        np.testing.assert_array_equal(made[name], value, err_msg=name)


@families
def test_a_session_generates_what_steps_fed_by_hand_do(fed):
    sequence = fed()
    session = sequence.session
    sequence.feed(IDS)
    tokens = [sequence.next()]
    for _ in range(20):
        sequence.feed([tokens[-1]], "decode")
        tokens.append(sequence.next())
    assert list(session.generate(IDS, 21)) == tokens
    assert len(list(session.generate(IDS[:5], 9))) == 9
    assert list(session.generate(IDS, 21)) == tokens, "another sequence has left something behind"


def test_the_reference_reader_accepts_the_manifest(tiny, reference):
    answer = reference.ask((tiny.package.path / MANIFEST).read_text())
    assert answer.messages == ()
    assert answer.accepted


@families
def test_a_second_compile_gives_the_same_bytes(tiny, cache, tmp_path):
    again = compiled(str(tiny.checkpoint), tmp_path / "again", cache, numerics="precise")
    kernels = [f"{KERNELS}/{path.name}" for path in (again.path / KERNELS).iterdir()]
    assert len(kernels) == len(list((tiny.package.path / KERNELS).iterdir()))
    for name in (MANIFEST, LOCK, PLAN, *kernels):
        assert (again.path / name).read_bytes() == (tiny.package.path / name).read_bytes()
