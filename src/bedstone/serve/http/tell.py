"""Log-probabilities and ids of tokens, as the two endpoints tell them."""

from collections.abc import Sequence

from bedstone.checkpoint.tokenizer import Tokenizer
from bedstone.serve.http.choice import Choice
from bedstone.serve.http.order import Order
from bedstone.serve.http.replies import (
    ChatLogprobs,
    CompletionLogprobs,
    TokenLogprob,
    TopLogprob,
)
from bedstone.serve.text.answer import Delta
from bedstone.serve.text.entries import Entry, token_key, token_text


def chat_logprobs(tokenizer: Tokenizer, entries: Sequence[Entry]) -> ChatLogprobs:
    """Each token with its bytes and the likeliest in its place."""
    return ChatLogprobs([_token(tokenizer, entry) for entry in entries])


def _token(tokenizer: Tokenizer, entry: Entry) -> TokenLogprob:
    piece = tokenizer.piece(entry.token)
    top = [_top(tokenizer.piece(token), logprob) for token, logprob in entry.top]
    return TokenLogprob(token_text(piece), entry.logprob or 0.0, list(piece), top)


def _top(piece: bytes, logprob: float) -> TopLogprob:
    return TopLogprob(token_text(piece), logprob, list(piece))


def completion_logprobs(tokenizer: Tokenizer, entries: Sequence[Entry]) -> CompletionLogprobs:
    """The older form; the token that came is always among the likeliest."""
    return CompletionLogprobs(
        [token_key(tokenizer.piece(entry.token)) for entry in entries],
        [entry.logprob for entry in entries],
        [_likeliest(tokenizer, entry) for entry in entries],
        [entry.offset for entry in entries],
    )


def _likeliest(tokenizer: Tokenizer, entry: Entry) -> dict[str, float] | None:
    if entry.logprob is None:
        return None
    told = {token_key(tokenizer.piece(token)): logprob for token, logprob in entry.top}
    told.setdefault(token_key(tokenizer.piece(entry.token)), entry.logprob)
    return told


def token_ids(order: Order, choice: Choice, delta: Delta, *, first: bool) -> dict[str, list[int]]:
    """The ids of what is told, and of the prompt the first time, where they were asked for."""
    if not order.asked.return_token_ids:
        return {}
    ids = {"token_ids": [entry.token for entry in delta.entries]}
    return ids | ({"prompt_token_ids": list(choice.prompt.ids)} if first else {})
