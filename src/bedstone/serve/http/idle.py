"""Fields that other servers offer and this one does not, and the values that ask for nothing."""

from collections.abc import Mapping
from typing import Any

import msgspec

from bedstone.serve.http.refusal import bad
from bedstone.spec.frozen import Frozen


class Idle(Frozen):
    """The values of a field that change nothing, and why any other is refused."""

    values: tuple[object, ...]
    why: str


ALL = "all that is made is told, ask for `n`"
ANEW = "an answer always begins a message of its own"
NOT_HERE = "it is not offered here"
TEXT = "answers are text"

FIELDS: Mapping[str, Idle] = {
    "add_generation_prompt": Idle((True,), ANEW),
    "audio": Idle((), TEXT),
    "best_of": Idle((1,), ALL),
    "continue_final_message": Idle((False,), ANEW),
    "documents": Idle(([],), NOT_HERE),
    "echo": Idle((False,), "a chat does not repeat its messages"),
    "function_call": Idle(("auto", "none"), "`tool_choice` is its newer name"),
    "functions": Idle(([],), "`tools` is its newer name"),
    "include_reasoning": Idle((True,), "thoughts are always told"),
    "include_stop_str_in_output": Idle((False,), "text that ends an answer is not told"),
    "length_penalty": Idle((1,), NOT_HERE),
    "min_tokens": Idle((0,), "`ignore_eos` goes on to `max_tokens`"),
    "modalities": Idle((["text"],), TEXT),
    "moderation": Idle((), NOT_HERE),
    "priority": Idle((0,), "requests are let in as they come"),
    "prompt_logprobs": Idle((), "`echo` and `logprobs` of a completion score a prompt"),
    "return_tokens_as_token_ids": Idle((False,), "`return_token_ids` tells them"),
    "skip_special_tokens": Idle((True,), "`return_token_ids` tells them"),
    "spaces_between_special_tokens": Idle((True,), NOT_HERE),
    "suffix": Idle(("",), "no text is filled in before another"),
    "truncate_prompt_tokens": Idle((), "no prompt is cut"),
    "use_beam_search": Idle((False,), NOT_HERE),
    "web_search_options": Idle((), "nothing is searched for"),
}
"""By name; whatever an endpoint decodes counts more. A null asks for nothing in any field."""


def without_idle(given: Mapping[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    """The fields of a request but those that are not `known` and ask for nothing.

    Raises `Refusal`: a field that is not offered asks for something.
    """
    for name, value in given.items():
        field = FIELDS.get(name)
        if name in known or value is None or field is None:
            continue
        if not any(_same(value, idle) for idle in field.values):
            raise bad(_refused(name, field), name, "unsupported")
    return {
        name: value
        for name, value in given.items()
        if name in known or (value is not None and name not in FIELDS)
    }


def idle_schemas(known: tuple[str, ...]) -> dict[str, Any]:
    """The JSON schema of each such field of a request that has the `known` ones."""
    return {
        name: {"enum": [None, *field.values]} for name, field in FIELDS.items() if name not in known
    }


def _same(value: object, idle: object) -> bool:
    # to Python, true is 1
    return value == idle and isinstance(value, bool) == isinstance(idle, bool)


def _refused(name: str, field: Idle) -> str:
    if not field.values:
        return f"`{name}` is refused: {field.why}"
    told = " or ".join(f"`{msgspec.json.encode(value).decode()}`" for value in field.values)
    return f"`{name}`: expected {told}, as {field.why}"
