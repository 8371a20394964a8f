"""How likely a prompt's own tokens were."""

from collections.abc import Sequence

from bedstone.serve.http.front import Front
from bedstone.serve.http.order import Order
from bedstone.serve.requests import Finished, Request, Sampling, Token
from bedstone.serve.text.constraint import Forced


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
    requests = [
        (
            Request(
                id=f"{order.id}-score-{at}",
                tokens=prompt.ids[:1],
                max_tokens=len(prompt.ids) - 1,
                sampling=Sampling(logprobs=top),
                constraint=Forced(prompt.ids[1:], front.limits.vocab),
                deadline=front.clock() + front.settings.deadline_seconds,
            ),
            score,
        )
        for at, (prompt, score) in enumerate(zip(order.prompts, scores, strict=True))
        if len(prompt.ids) > 1
    ]
    try:
        run.start(requests)
        while run.live:
            await run.more()
    finally:
        run.close()
    return [score.tokens for score in scores]
