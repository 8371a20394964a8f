"""Cases that users of such engines reported."""

import pytest

from bedstone.serve.engine.options import Options
from bedstone.serve.requests import Token
from served_toy import BROKEN, answers


def counting(count: int, start: int = 3) -> list[int]:
    """A prompt without a period."""
    return [(start + 7 * at * at) % 90 for at in range(count)]


@pytest.mark.parametrize(("length", "cached"), [(32, 16), (31, 16), (33, 32), (1, 0)])
def test_d03_a_prompt_that_was_there_runs_its_last_token(core, length, cached):
    prompt = counting(length)
    engine = core(page=16, width=4, rows=64)
    for name in ("cold", "warm"):
        engine.submit(name, prompt, 8)
        engine.finish()
    assert engine.tokens["cold"] == engine.tokens["warm"] == answers(prompt, 8)
    assert (engine.ends["cold"].cached, engine.ends["warm"].cached) == (0, cached)


@pytest.mark.parametrize(("length", "cached"), [(32, 31), (31, 30), (2, 1), (1, 0)])
def test_d03_a_state_of_one_length_is_kept_short_of_the_last_token(core, length, cached):
    prompt = counting(length)
    engine = core(page=16, width=4, rows=64, folded=True)
    for name in ("cold", "warm"):
        engine.submit(name, prompt, 8)
        engine.finish()
    assert engine.tokens["cold"] == engine.tokens["warm"] == answers(prompt, 8, folded=True)
    assert engine.ends["warm"].cached == cached


def test_d04_what_is_cached_is_known_before_work_is_counted(core, monkeypatch):
    prompt = counting(465)
    engine = core(Options(chunk=512), page=256, width=4, rows=512)
    engine.submit("first", [*prompt[:256], 1, 2], 1)
    engine.finish()
    pieces = fed_pieces(engine, monkeypatch)
    engine.submit("second", prompt, 3)
    engine.finish()
    assert pieces == [(256, 209)]
    assert engine.tokens["second"] == answers(prompt, 3)


def fed_pieces(engine, monkeypatch):
    """Where each piece of a prompt begins from now on, and how long it is."""
    found, calls = [], engine.core._piece_calls
    start = calls.start

    def watched(shape, pieces):
        found.extend((sequence.fed, count) for sequence, count in pieces)
        return start(shape, pieces)

    monkeypatch.setattr(calls, "start", watched)
    return found


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("reuse", [True, False])
def test_d07_who_gives_way_loses_and_repeats_nothing(core, folded, reuse):
    engine = core(Options(reuse=reuse), pages=8, page=4, folded=folded)
    prompts = {name: counting(8, start) for name, start in (("a", 1), ("b", 2), ("c", 4))}
    for name, prompt in prompts.items():
        engine.submit(name, prompt, 12)
    engine.finish()
    for name, prompt in prompts.items():
        assert engine.tokens[name] == answers(prompt, 12, folded=folded)
        end = engine.ends[name]
        assert (end.prompt, end.made, end.reason) == (8, 12, "length")
    stats = engine.core.stats()
    assert stats.preempted > 0
    assert (stats.pages_held, stats.running, stats.waiting) == (0, 0, 0)


def test_d07_what_is_reserved_at_once_never_gives_way(core):
    engine = core(Options(admission="worst"), pages=8, page=4)
    for start, name in enumerate("abc"):
        engine.submit(name, counting(8, start), 12)
    engine.finish()
    assert all(engine.tokens[n] == answers(counting(8, s), 12) for s, n in enumerate("abc"))
    assert engine.core.stats().preempted == 0


@pytest.mark.parametrize("emits", [True, False])
@pytest.mark.parametrize("length", [3, 4, 5, 8, 9])
def test_d08_no_token_is_told_of_an_unfinished_prompt(core, monkeypatch, length, emits):
    prompt = counting(length)
    whole = core(Options(chunk=1024), emits=emits, rows=1024)
    pieced = core(Options(chunk=4), emits=emits)
    pieces = fed_pieces(pieced, monkeypatch)
    for engine in (whole, pieced):
        engine.submit("a", prompt, 4)
    whole.finish()
    while pieced.core.busy:
        told = [event for event in pieced.turn() if isinstance(event, Token)]
        assert not told or sum(count for _, count in pieces) >= length - (not emits)
    body = length if emits else length - 1
    assert pieces == [(at, min(4, body - at)) for at in range(0, body, 4)]
    assert pieced.tokens["a"] == whole.tokens["a"] == answers(prompt, 4)


def test_d10_a_row_says_the_same_wherever_it_is(core):
    prompt = counting(11)
    others = [counting(3 + at, at) for at in range(8)]
    for place in (0, 3, 7):
        engine = core(Options(reuse=False))
        for row in range(8):
            engine.submit(f"{row}", prompt if row == place else others[row], 12)
        engine.finish()
        assert engine.tokens[str(place)] == answers(prompt, 12)


def test_d11_pieces_after_a_prefix_are_cut_where_they_would_be_without(core, monkeypatch):
    prompt = counting(40)
    engine = core(Options(chunk=16), page=16, width=4, rows=16)
    cold = fed_pieces(engine, monkeypatch)
    engine.submit("cold", prompt, 16)
    engine.finish()
    assert cold == [(0, 16), (16, 16), (32, 8)]
    engine = core(Options(chunk=16), page=16, width=4, rows=16)
    engine.submit("other", [*prompt[:16], 1, 2], 1)
    engine.finish()
    warm = fed_pieces(engine, monkeypatch)
    engine.submit("warm", prompt, 16)
    engine.finish()
    assert warm == [(16, 16), (32, 8)]
    assert engine.tokens["warm"] == answers(prompt, 16)


@pytest.mark.parametrize("folded", [False, True])
def test_e02_rows_of_nobody_leave_the_others_alone(core, folded):
    """Rows of nobody, of eight each step, lie in a page and on a line that no sequence has."""
    engine = core(Options(reuse=False), told=False, folded=folded, pages=9, page=4)
    prompts = {"a": counting(5), "b": counting(9, 2)}
    for name, prompt in prompts.items():
        engine.submit(name, prompt, 7)
    engine.finish()
    for name, prompt in prompts.items():
        assert engine.tokens[name] == answers(prompt, 7, folded=folded)


def test_e04_rows_of_nobody_read_no_row_of_anybody(core):
    """What a padded row reads is one token 0 at position 0, never a broken neighbour's."""
    engine = core(Options(reuse=False), told=False, pages=9, page=4)
    engine.submit("broken", [5, BROKEN, 1], 4)
    engine.finish()
    assert engine.ends["broken"].reason == "error"
    for name, start in (("a", 1), ("b", 2)):
        engine.submit(name, counting(6, start), 9)
    engine.finish()
    assert engine.tokens["a"] == answers(counting(6, 1), 9)
    assert engine.tokens["b"] == answers(counting(6, 2), 9)
