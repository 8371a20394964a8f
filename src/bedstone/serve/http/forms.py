"""The form an answer must have, and how its text is read."""

import re
from collections.abc import Iterable, Mapping

from bedstone.serve.http.refusal import bad
from bedstone.serve.http.sampling import Asked
from bedstone.serve.http.settings import Settings
from bedstone.serve.http.shapes import (
    AllowedTools,
    ChatRequest,
    NamedTool,
    ResponseFormat,
    StructuredOutputs,
)
from bedstone.serve.text import reasoning
from bedstone.serve.text.grammar import (
    ANY_OBJECT,
    after_thought,
    calls_grammar,
    json_grammar,
    regex_grammar,
)
from bedstone.serve.text.parts import Plain, Reader
from bedstone.serve.text.reasoning import Reasoning
from bedstone.serve.text.tools.table import WRITINGS
from bedstone.spec.frozen import Frozen

Schemas = Mapping[str, object]


class Form(Frozen):
    """How answers of a request are read, and the grammar they keep to if they do.

    `tools` are those that may be called, the schema of each one's parameters by its name.
    """

    settings: Settings
    tools: Schemas
    grammar: str | None = None
    thinks: bool = False
    thinking: bool = False
    one_call: bool = False

    def reader(self) -> Reader:
        """A reader of one answer."""
        way = self.settings.tools
        inner = WRITINGS[way].reader(self.tools) if self.tools and way else Plain()
        return Reasoning(inner, thinking=self.thinking) if self.thinks else inner


def completion_form(asked: Asked, settings: Settings) -> Form:
    """The form of a completion.

    Raises `Refusal`: it asks for two forms at once, or for a schema and gives none.
    """
    return Form(settings, {}, _asked_grammar(asked))


def chat_form(asked: ChatRequest, settings: Settings, prompt: str) -> Form:
    """The form of a chat whose prompt is `prompt`.

    Raises `Refusal`: as for a completion; or it asks for calls that cannot be made.
    """
    thinks = settings.reasoning
    thinking = thinks and reasoning.opens_thought(prompt)
    tools = offered(asked)
    grammar = _asked_grammar(asked)
    called = _called_grammar(asked, settings, tools)
    if grammar and called:
        raise bad("`tool_choice` asks for a call and another field for a form", "tool_choice")
    grammar = grammar or called
    if grammar and thinks:
        grammar = after_thought(grammar, thinking=thinking)
    one_call = asked.parallel_tool_calls is False
    return Form(settings, tools, grammar, thinks, thinking, one_call)


def offered(asked: ChatRequest) -> Schemas:
    """The tools of a chat that may be called, the schema of each one's parameters by its name.

    Raises `Refusal`: two have one name.
    """
    tools = asked.tools or []
    schemas = {tool.function.name: tool.function.parameters for tool in tools}
    if len(schemas) < len(tools):
        raise bad("`tools`: two have the same name", "tools")
    if isinstance(asked.tool_choice, AllowedTools):
        return _named(schemas, asked.tool_choice.allowed_tools.tools)
    return {} if asked.tool_choice == "none" else schemas


def _named(schemas: Schemas, named: Iterable[NamedTool]) -> Schemas:
    """Those of the tools that are named.

    Raises `Refusal`: one is not among them.
    """
    names = dict.fromkeys(tool.function.name for tool in named)
    for name in names:
        if name not in schemas:
            raise bad(f"`tool_choice`: `{name}` is none of the `tools`", "tool_choice")
    return {name: schemas[name] for name in names}


def require_tools_known(asked: ChatRequest, settings: Settings, template: str) -> None:
    """Refuse tools that the model could not be told of, or whose calls could not be read.

    Raises `Refusal`: as said.
    """
    if offered(asked) and (settings.tools is None or "tools" not in template):
        raise bad("`tools`: this model's chat template takes none", "tools", "unsupported")


def _called_grammar(asked: ChatRequest, settings: Settings, tools: Schemas) -> str | None:
    choice = asked.tool_choice
    if isinstance(choice, AllowedTools):
        choice = choice.allowed_tools.mode
    if choice in {None, "auto", "none"}:
        return None
    if isinstance(choice, NamedTool):
        tools = _named(tools, [choice])
    if not tools or settings.tools is None:
        raise bad("`tool_choice` asks for a call and there are no `tools`", "tool_choice")
    several = choice == "required" and asked.parallel_tool_calls is not False
    return calls_grammar(settings.tools, tools, several=several)


def _asked_grammar(asked: Asked) -> str | None:
    wanted = asked.structured_outputs or StructuredOutputs()
    found = {
        "response_format": _format_grammar(asked.response_format),
        "guided_json": _json_grammar(asked.guided_json),
        "guided_regex": asked.guided_regex and regex_grammar(asked.guided_regex),
        "guided_choice": asked.guided_choice and _choice_grammar(asked.guided_choice),
        "structured_outputs.json": _json_grammar(wanted.json),
        "structured_outputs.json_object": wanted.json_object and json_grammar(ANY_OBJECT),
        "structured_outputs.regex": wanted.regex and regex_grammar(wanted.regex),
        "structured_outputs.choice": wanted.choice and _choice_grammar(wanted.choice),
    }
    given = {name: grammar for name, grammar in found.items() if grammar}
    if len(given) > 1:
        names = " and ".join(f"`{name}`" for name in given)
        raise bad(f"{names} ask for different forms", next(iter(given)))
    return next(iter(given.values()), None)


def _json_grammar(schema: object) -> str | None:
    return None if schema is None else json_grammar(schema)


def _format_grammar(form: ResponseFormat | None) -> str | None:
    if form is None or form.type == "text":
        return None
    if form.type == "json_object":
        return json_grammar(ANY_OBJECT)
    if form.json_schema is None or form.json_schema.schema is None:
        raise bad("`response_format.json_schema.schema` is missing", "response_format")
    return json_grammar(form.json_schema.schema)


def _choice_grammar(choices: list[str]) -> str:
    return regex_grammar("|".join(re.escape(choice) for choice in choices))
