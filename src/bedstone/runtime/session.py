"""A loaded package as a caller holds it: calls to run, and text to go on with."""

from collections.abc import Collection, Iterator, Sequence

from bedstone.runtime.executor import Executor
from bedstone.runtime.generate import Generator


class Session(Executor):
    """A loaded package on a device."""

    def generate(
        self, prompt: Sequence[int], max_tokens: int, stop_ids: Collection[int] = ()
    ) -> Iterator[int]:
        """The tokens that follow `prompt`, a sequence of its own, greedily.

        At most `max_tokens` come; a token of `stop_ids` ends them and is not among them. The
        sequence begins with the first token asked for, and ends where another one begins. A prompt
        that no sequence can hold is a `CapacityError`, logits that are not finite a `DeviceError`.
        """
        yield from Generator(self).generate(prompt, max_tokens, stop_ids)

    def generate_together(
        self, prompts: Sequence[Sequence[int]], max_tokens: int, stop_ids: Collection[int] = ()
    ) -> Iterator[tuple[int, int]]:
        """Which of `prompts`, and a token that follows it: each as `generate` would alone.

        All of them go on in one step, which the package must have been compiled for. A prompt that
        its share of the session's pages cannot hold is a `CapacityError`.
        """
        from bedstone.runtime.together import Together  # noqa: PLC0415 - few sessions need it

        yield from Together(self, len(prompts)).generate(prompts, max_tokens, stop_ids)
