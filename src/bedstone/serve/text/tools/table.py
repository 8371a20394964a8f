"""The ways of writing calls, by name, and which of them a chat template asks for."""

from collections.abc import Callable, Mapping
from typing import Literal, get_args

from bedstone.serve.text.parts import Reader
from bedstone.serve.text.tools import hermes, llama3, qwen3_coder
from bedstone.spec.frozen import Frozen

Way = Literal["hermes", "qwen3_coder", "llama3"]
WAYS: tuple[Way, ...] = get_args(Way)


class Writing(Frozen):
    """How a kind of model writes calls.

    `reader` makes a reader for tools, the schema of each one's parameters by its name. `markers`
    are texts that are one token in some vocabularies, and special in some of these. A template
    that holds one of `signs` asks for it.
    """

    reader: Callable[[Mapping[str, object]], Reader]
    markers: tuple[str, ...]
    signs: tuple[str, ...]


WRITINGS: Mapping[Way, Writing] = {
    "qwen3_coder": Writing(qwen3_coder.Qwen3Coder, qwen3_coder.MARKERS, (qwen3_coder.FUNCTION,)),
    "hermes": Writing(lambda _schemas: hermes.Hermes(), hermes.MARKERS, (hermes.OPEN,)),
    "llama3": Writing(llama3.Llama3, llama3.MARKERS, (llama3.TAG, '"parameters": ')),
}
"""In the order in which a template is asked: the first whose sign it holds is meant."""


def guessed(template: str) -> Way | None:
    """The way of writing calls that a chat template asks for, if it takes tools."""
    if "tools" not in template:
        return None
    for way, writing in WRITINGS.items():
        if any(sign in template for sign in writing.signs):
            return way
    return None
