"""Events are told in their order, whenever they are made."""

from bedstone.serve.engine.ledger import Ledger, Told
from bedstone.serve.engine.sequence import Sequence
from bedstone.serve.requests import Finished, Request, Token


def test_tokens_of_a_step_lie_between_what_is_told_alone():
    told = Told()
    assert not told
    told.add(Token("a", 1, -0.5))
    told.add_each(("a", "b"), [2, 3])
    told.add_each(("a", "b"), [4, 5], (None, -1.5), ((), ((5, -1.5),)))
    told.add_each((), [])
    told.add(Finished("b", "stop", 1, 0, 1))
    expected = [
        Token("a", 1, -0.5),
        Token("a", 2),
        Token("b", 3),
        Token("a", 4),
        Token("b", 5, -1.5, ((5, -1.5),)),
        Finished("b", "stop", 1, 0, 1),
    ]
    assert list(told) == list(told) == expected
    assert len(told) == 6
    assert (told[1], told[-1], told[1:3]) == (expected[1], expected[-1], expected[1:3])


def test_what_was_taken_is_not_told_again():
    ledger = Ledger()
    sequence = Sequence.of(Request("a", [1, 2], 3), 0)
    ledger.begin(sequence)
    ledger.tell_each(("a",), [7])
    first, ended = ledger.take()
    ledger.end(sequence, "cancelled")
    ledger.end(sequence, "length")
    second, over = ledger.take()
    assert (list(first), ended) == ([Token("a", 7)], [])
    assert (list(second), over) == ([Finished("a", "cancelled", 2, 0, 0)], ["a"])
    assert ledger.made_tokens == 1
