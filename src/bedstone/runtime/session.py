"""A loaded package as a caller holds it: calls to run, and text to go on with."""

from collections.abc import Collection, Iterator, Sequence

from bedstone.runtime.executor import Executor
from bedstone.runtime.generate import Generator
from bedstone.spec.sampling import LIKELIEST, Sampling


class Session(Executor):
    """A loaded package on a device."""

    def generate(
        self,
        prompt: Sequence[int],
        max_tokens: int,
        stop_ids: Collection[int] = (),
        sampling: Sampling = LIKELIEST,
    ) -> Iterator[int]:
        """The tokens that follow `prompt`, a sequence of its own, drawn as `sampling` says.

        At most `max_tokens` come; a token of `stop_ids` ends them and is not among them. The
        sequence begins with the first token asked for, and ends where another one begins. A prompt
        that no sequence can hold is a `CapacityError`, logits that are not finite a `WeightError`,
        a `sampling` that the package has no sampler for a `CallerError`.
        """
        generator = Generator(self, sampling=sampling)
        yield from generator.generate(prompt, max_tokens, stop_ids)

    def generate_together(
        self,
        prompts: Sequence[Sequence[int]],
        max_tokens: int,
        stop_ids: Collection[int] = (),
        samplings: Sequence[Sampling] | None = None,
    ) -> Iterator[tuple[int, int]]:
        """Which of `prompts`, and a token that follows it: each as `generate` would alone.

        All of them go on in one step, which the package must have been compiled for. A prompt that
        its share of the session's pages cannot hold is a `CapacityError`.
        """
        from bedstone.runtime.together import Together  # noqa: PLC0415 - few sessions need it

        together = Together(self, len(prompts), samplings)
        yield from together.generate(prompts, max_tokens, stop_ids)
