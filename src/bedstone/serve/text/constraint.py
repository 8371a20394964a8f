"""Grammars that hold an answer to a form, by `llguidance`, over a model's own vocabulary."""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from threading import Lock

import numpy as np
from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper
from numpy.typing import NDArray

from bedstone.checkpoint.tokenizer import Tokenizer
from bedstone.errors import CallerError

WORD = 32
KEPT = 64
"""Grammars that are remembered, compiled."""
SHOWN = 500
"""Characters of a complaint about a grammar that pass on."""
COMPLAINTS = {"NoExtensionBias": "no text fits it"}
"""What `llguidance` says in a word of its own."""
MOST_SIZE = 200_000
FUEL = 1_000_000
"""How large a grammar, and how much work on one before its first token, is accepted."""


class Grammars:
    """Compiles grammars for one vocabulary of `vocab` ids.

    `ends` are the tokens that end an answer; special tokens but those to `keep` are never allowed.
    Safe to call from several threads.
    """

    def __init__(
        self, tokenizer: Tokenizer, vocab: int, ends: Collection[int], keep: Collection[int] = ()
    ) -> None:
        self._vocab = vocab
        self._ends = frozenset(ends)
        self._tokenizer = _wrapped(tokenizer, vocab, self._ends, keep)
        self._compiled: OrderedDict[str, LLMatcher] = OrderedDict()
        self._lock = Lock()

    def compile(self, grammar: str, count: int) -> "list[Grammar]":
        """As many sequences at their start as asked for.

        Raises `CallerError`: the grammar is none, or too large to work with.
        """
        with self._lock:
            matcher = self._compiled.get(grammar)
        if matcher is None:
            limits = LLParserLimits(initial_lexer_fuel=FUEL, max_grammar_size=MOST_SIZE)
            matcher = LLMatcher(self._tokenizer, grammar, log_level=0, limits=limits)
            if not matcher.is_error():
                matcher.compute_bitmask()
            _require_usable(matcher)
            matcher.reset()
            self._remember(grammar, matcher)
        return [Grammar(matcher.deep_copy(), self._vocab, self._ends) for _ in range(count)]

    def _remember(self, grammar: str, matcher: LLMatcher) -> None:
        with self._lock:
            self._compiled[grammar] = matcher
            if len(self._compiled) > KEPT:
                self._compiled.popitem(last=False)


class Grammar:
    """A `Constraint`: where one sequence is in its grammar."""

    def __init__(self, matcher: LLMatcher, vocab: int, ends: frozenset[int]) -> None:
        self._matcher = matcher
        self._words = -(-vocab // WORD)
        self._ends = ends

    def allowed(self) -> NDArray[np.uint32]:
        """A bit for each token that may come next; of an answer that may end, those that end it.

        Raises `CallerError`: the grammar has become too large to work with.
        """
        mask = np.frombuffer(self._matcher.compute_bitmask(), np.uint32)
        _require_workable(self._matcher)
        words = np.zeros(self._words, np.uint32)
        size = min(len(mask), self._words)
        words[:size] = mask[:size]
        if self._matcher.is_accepting() or not words.any():
            set_bits(words, self._ends)
        return words

    def accept(self, token: int) -> bool:
        """Go on by a token; whether anything but an end may follow.

        Raises `CallerError`: the grammar has become too large to work with, so nobody knows.
        """
        if token in self._ends:
            return False
        taken = self._matcher.consume_token(token)
        _require_workable(self._matcher)
        return taken and not self._matcher.is_stopped()


class Forced:
    """A `Constraint` that leaves a sequence no choice; its end is the end of `tokens`."""

    def __init__(self, tokens: Sequence[int], vocab: int) -> None:
        self._tokens = tokens
        self._words = -(-vocab // WORD)
        self._at = 0

    def allowed(self) -> NDArray[np.uint32]:
        """The bit of the token whose turn it is."""
        words = np.zeros(self._words, np.uint32)
        set_bits(words, self._tokens[self._at : self._at + 1])
        return words

    def accept(self, token: int) -> bool:
        """Go on by the token."""
        self._at += token == self._tokens[self._at]
        return self._at < len(self._tokens)


def set_bits(words: NDArray[np.uint32], tokens: Iterable[int]) -> None:
    """Set the bits of tokens that have one."""
    for token in tokens:
        if token < len(words) * WORD:
            words[token // WORD] |= np.uint32(1 << (token % WORD))


def _require_workable(matcher: LLMatcher) -> None:
    """Tell a grammar that is too much work, or a fault, from a token that it does not take."""
    said = matcher.get_error().partition("</state>")[0]
    if "TooComplex" in said or said.startswith("panic"):
        _require_usable(matcher)


def _require_usable(matcher: LLMatcher) -> None:
    if matcher.is_error():
        # behind the complaint stand the parser's own state and the grammar
        complaint = matcher.get_error().partition("<state>")[0].split("\n\n")[0].strip()
        told = COMPLAINTS.get(complaint, complaint)
        raise CallerError(f"the grammar cannot be used: {told[:SHOWN]}")


class _Vocabulary:
    """What `llguidance` asks of a tokenizer."""

    def __init__(self, tokenizer: Tokenizer, vocab: int, end: int, keep: Collection[int]) -> None:
        ids = range(min(vocab, tokenizer.size))
        self.bos_token_id = tokenizer.bos
        self.eos_token_id = end
        # ids that the model has and the tokenizer has not: one of them may be `end`
        nameless = [b""] * (vocab - len(ids))
        self.tokens = [*(tokenizer.piece(each) for each in ids), *nameless]
        self.special_token_ids = [
            each for each in ids if tokenizer.is_special(each) and each not in keep
        ]
        self._tokenizer = tokenizer

    def __call__(self, text: bytes) -> list[int]:
        return self._tokenizer.encode(text.decode(errors="replace"), special=False)


def _wrapped(
    tokenizer: Tokenizer, vocab: int, ends: frozenset[int], keep: Collection[int]
) -> LLTokenizer:
    # a vocabulary without an end still needs a name for one: the last id, which no text has
    known = sorted(end for end in ends if end < min(vocab, tokenizer.size))
    vocabulary = _Vocabulary(tokenizer, vocab, known[0] if known else vocab - 1, keep)
    return LLTokenizer(TokenizerWrapper(vocabulary), eos_token=known or None)
