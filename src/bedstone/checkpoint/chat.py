"""A chat template: messages to the text a model was trained to continue.

A template is a program by whoever shipped the checkpoint: it runs in `bedstone.checkpoint.sandbox`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from jinja2 import Template, TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser

from bedstone.checkpoint.sandbox import SIZE_LIMIT, Sandbox, budgeted, metered, printed
from bedstone.errors import CallerError, WeightError

SOURCE_LIMIT = 1_000_000
DATE_LIMIT = 1000
INDENT_LIMIT = 100
"""Characters of a template, of a date's format, and of one level of JSON."""


class _Generation(Extension):
    """`{% generation %}` marks the model's own words for training; here it only encloses them."""

    tags = {"generation"}  # noqa: RUF012 - declared by the base class

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


@dataclass(frozen=True)
class ChatTemplate:
    """A template and the special tokens it may spell (`bos_token`, `eos_token`, …)."""

    source: str
    tokens: Mapping[str, str] = field(default_factory=dict)

    def render(
        self,
        messages: Sequence[Mapping[str, object]],
        *,
        now: datetime,
        tools: Sequence[Mapping[str, object]] | None = None,
        add_generation_prompt: bool = True,
        variables: Mapping[str, object] | None = None,
    ) -> str:
        """The text of `messages`, with the opening of the model's answer unless told otherwise.

        `now` is what the template may print as today; `variables` are a model's own switches.
        Raises `CallerError` where the template refuses the messages and `WeightError` where it
        fails.
        """
        context = {
            **self.tokens,
            **(variables or {}),
            "messages": messages,
            "tools": tools,
            "add_generation_prompt": add_generation_prompt,
            "strftime_now": lambda form: _date(now, form),
        }
        template = self._template
        try:
            with budgeted():
                return _joined(template.generate(context))
        except (CallerError, WeightError):
            raise
        except Exception as error:  # a template is a program: it may raise anything
            raise WeightError(f"the chat template failed: {error}") from error

    @cached_property
    def _template(self) -> Template:
        if len(self.source) > SOURCE_LIMIT:
            raise WeightError(f"the chat template is longer than {SOURCE_LIMIT} characters")
        environment = _environment()
        try:
            return environment.from_string(metered(environment.parse(self.source)))
        except (TemplateError, RecursionError) as error:
            raise WeightError(f"the chat template does not parse: {error}") from error


def _environment() -> Sandbox:
    environment = Sandbox(
        {"tojson": _to_json},
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[loopcontrols, _Generation],
        # Folding constants would run filters before a budget is set.
        optimized=False,
    )
    environment.globals["raise_exception"] = _refuse
    return environment


def _joined(chunks: Iterator[str]) -> str:
    parts, size = [], 0
    for chunk in chunks:
        size += len(chunk)
        if size > SIZE_LIMIT:
            raise WeightError(f"the chat template writes more than {SIZE_LIMIT} characters")
        parts.append(chunk)
    return "".join(parts)


def _to_json(
    value: object,
    ensure_ascii: bool = False,  # noqa: FBT001, FBT002 - the filter's signature in templates
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,  # noqa: FBT001, FBT002
) -> str:
    """JSON as it stands, without the escapes for HTML that Jinja's own filter makes."""
    if isinstance(indent, int) and indent > INDENT_LIMIT:
        raise SecurityError(f"`tojson` indents by {INDENT_LIMIT} at most")
    encoder = json.JSONEncoder(
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )
    return _joined(encoder.iterencode(value))


def _date(now: datetime, form: str) -> str:
    if len(form) > DATE_LIMIT:
        raise SecurityError(f"a date's format is longer than {DATE_LIMIT} characters")
    return now.strftime(form)


def _refuse(message: object) -> None:
    text = " ".join(str(printed(message)).split())
    raise CallerError(f"the chat template refuses the messages: {text}")
