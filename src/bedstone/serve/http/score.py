"""How likely a prompt's own tokens were."""

from collections.abc import Sequence

from bedstone.serve.http.front import Front
from bedstone.serve.http.order import Order
from bedstone.serve.link.link import Ask
from bedstone.serve.requests import Finished, Sampling, Token


class _Score:
    """Collects the tokens of a prompt as the engine makes them again."""

    over = False

    def __init__(self, first: int) -> None:
        self.tokens = [Token("", first)]

    def token(self, token: Token) -> None:
        """Take the next."""
        self.tokens.append(token)

    def end(self, _finished: Finished) -> None:
        """All are there."""


async def scored(front: Front, order: Order, top: int) -> Sequence[Sequence[Token]]:
    """Each prompt's tokens with their log-probabilities, None for the first of each.

    The engine makes a prompt anew from its first token, left no choice: a token costs as much as
    one of the answer.

    Raises `Refusal`: the engine does not take them.
    """
    run = front.run(counted=False)
    scores = [_Score(prompt.ids[0]) for prompt in order.prompts]
    asks, takers = [], {}
    for at, (prompt, score) in enumerate(zip(order.prompts, scores, strict=True)):
        name, forced = f"{order.id}-score-{at}", prompt.ids[1:]
        if forced:
            asks.append(
                Ask(
                    tokens=prompt.ids[:1],
                    max_tokens=len(forced),
                    choices=[(name, Sampling(logprobs=top))],
                    forced=forced,
                    seconds=front.settings.deadline_seconds,
                )
            )
            takers[name] = score
    try:
        if asks:
            await run.start(asks, takers)
        while run.live:
            await run.more()
    finally:
        run.close()
    return [score.tokens for score in scores]
