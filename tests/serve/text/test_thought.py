"""Thoughts that are ended when they grow too long."""

import numpy as np
import pytest

from bedstone.serve.text.constraint import Grammars
from bedstone.serve.text.grammar import after_thought, regex_grammar
from bedstone.serve.text.reasoning import CLOSE
from bedstone.serve.text.thought import END, BoundedThought
from scripted import letters

VOCAB = 300


@pytest.fixture(scope="module")
def vocabulary():
    return letters([], special=["<eos>"], eos=[256])


def allowed(constraint):
    words = constraint.allowed()
    return {at for at in range(len(words) * 32) if words[at // 32] >> (at % 32) & 1}


def said(vocabulary, constraint, text, count):
    """What comes of a model that says `text` over and over where it may."""
    out, at = [], 0
    wanted = vocabulary.encode(text, special=True)
    for _ in range(count):
        may = allowed(constraint)
        token = wanted[at % len(wanted)] if wanted[at % len(wanted)] in may else min(may)
        at += token == wanted[at % len(wanted)]
        out.append(token)
        if not constraint.accept(token):
            break
    return vocabulary.decode(out)


@pytest.mark.parametrize(("thinking", "head"), [(True, ""), (False, "<think>")])
def test_a_thought_ends_after_so_many_tokens(vocabulary, thinking, head):
    constraint = BoundedThought(None, vocabulary, VOCAB, 5, thinking=thinking)
    heard = said(vocabulary, constraint, head, len(head)) if head else ""
    assert heard == head
    assert said(vocabulary, constraint, "hm", 5 + len(END)) == f"hmhmh{END}"
    assert said(vocabulary, constraint, "hm", 40) == "hm" * 20


def test_a_thought_that_ends_by_itself_and_an_answer_without_one_are_left_alone(vocabulary):
    constraint = BoundedThought(None, vocabulary, VOCAB, 12, thinking=True)
    text = f"a{CLOSE}" + "b" * 30
    assert said(vocabulary, constraint, text, len(text)) == text
    constraint = BoundedThought(None, vocabulary, VOCAB, 3, thinking=False)
    assert said(vocabulary, constraint, " <thought", 40) == (" <thought" * 5)[:40]


def test_a_thought_that_one_token_ends_at_once_is_over():
    constraint = BoundedThought(None, letters([CLOSE]), VOCAB, 2, thinking=True)
    for token in (0, 5, 6, 7, 8):
        assert constraint.accept(token)
        assert len(allowed(constraint)) > 1


def test_an_answer_keeps_to_its_form_after_a_thought_that_was_ended(vocabulary):
    grammar = after_thought(regex_grammar("[0-9]{3}"), thinking=True)
    [inner] = Grammars(vocabulary, VOCAB, vocabulary.eos).compile(grammar, 1)
    constraint = BoundedThought(inner, vocabulary, VOCAB, 4, thinking=True)
    assert said(vocabulary, constraint, "hm7", 60) == f"hm7h{END}000"


def test_every_token_that_is_one_is_allowed(vocabulary):
    constraint = BoundedThought(None, vocabulary, VOCAB, 4, thinking=True)
    assert allowed(constraint) == set(range(257))
    assert constraint.allowed().dtype == np.uint32
    assert len(constraint.allowed()) == 10
