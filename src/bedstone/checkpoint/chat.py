"""A chat template: messages to the text a model was trained to continue.

A template is a program by whoever shipped the checkpoint, so it runs in Jinja's immutable sandbox
(no private attributes, no mutation, no loader) and under a budget: loop rounds and calls are
counted, sums, products and joined strings are kept below a size, the output too. What one built-in
filter may do with one argument (`'x' | center(n)`) is not bounded.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from jinja2 import Template, TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from bedstone.errors import CallerError, WeightError

SOURCE_LIMIT = 1_000_000
SIZE_LIMIT = 16_000_000
"""Characters of the output, and of any string or list made on the way; bits of a number."""
STEP_LIMIT = 200_000
"""Loop rounds and calls of one rendering."""


@dataclass(slots=True)
class _Budget:
    left: int

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise SecurityError(f"it takes more than {STEP_LIMIT} steps")


_BUDGET: ContextVar[_Budget] = ContextVar("budget")


class _Generation(Extension):
    """`{% generation %}` marks the model's own words for training; here it only encloses them."""

    tags = {"generation"}  # noqa: RUF012 - declared by the base class

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Sandbox(ImmutableSandboxedEnvironment):
    """The sandbox with calls counted and growing operators kept below a size."""

    intercepted_binops = frozenset({"+", "*", "**"})

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Call `obj`, which may be anything a template can reach."""
        _BUDGET.get().spend()
        return super().call(context, obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401
        """Apply an operator whose result may be far larger than its operands."""
        if _result_size(operator, left, right) > SIZE_LIMIT:
            raise SecurityError(f"the result of `{operator}` is too large")
        return super().call_binop(context, operator, left, right)


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
            "strftime_now": now.strftime,
        }
        template = self._template
        token = _BUDGET.set(_Budget(STEP_LIMIT))
        try:
            return _joined(template.generate(context))
        except (CallerError, WeightError):
            raise
        except Exception as error:  # a template is a program: it may raise anything
            raise WeightError(f"the chat template failed: {error}") from error
        finally:
            _BUDGET.reset(token)

    @cached_property
    def _template(self) -> Template:
        if len(self.source) > SOURCE_LIMIT:
            raise WeightError(f"the chat template is longer than {SOURCE_LIMIT} characters")
        environment = _environment()
        try:
            return environment.from_string(_counted(environment.parse(self.source)))
        except (TemplateError, RecursionError) as error:
            raise WeightError(f"the chat template does not parse: {error}") from error


def _environment() -> _Sandbox:
    environment = _Sandbox(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[loopcontrols, _Generation],
        # Folding constants would run filters before a budget is set.
        optimized=False,
    )
    environment.filters.update(tojson=_to_json, _rounds=_rounds, _bounded=_bounded)
    environment.globals["raise_exception"] = _refuse
    return environment


def _counted(tree: nodes.Template) -> nodes.Template:
    """`tree` with each loop's rounds counted and each join's size checked."""
    for loop in tree.find_all(nodes.For):
        loop.iter = _filtered(loop.iter, "_rounds")
    for holder in list(tree.find_all(nodes.Node)):
        for name, value in holder.iter_fields():
            if isinstance(value, list):
                setattr(holder, name, [_checked(item) for item in value])
            else:
                setattr(holder, name, _checked(value))
    return tree


def _checked(value: object) -> object:
    return _filtered(value, "_bounded") if isinstance(value, nodes.Concat) else value


def _filtered(node: nodes.Node, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


def _rounds(values: Iterable[object]) -> Iterable[object]:
    """`values`, each of which costs a step; a sequence stays one, for `loop.length`."""
    if isinstance(values, Sequence | Mapping):
        spend = _BUDGET.get().spend
        for _ in range(len(values)):
            spend()
        return values
    return _each(values)


def _each(values: Iterable[object]) -> Iterator[object]:
    for value in values:
        _BUDGET.get().spend()
        yield value


def _bounded(text: str) -> str:
    if len(text) > SIZE_LIMIT:
        raise SecurityError("a joined string is too large")
    return text


def _result_size(operator: str, left: object, right: object) -> int:
    """Characters or elements of a sequence's, bits of a number's sum, product or power."""
    if operator == "+":
        return _extent(left) + _extent(right)
    if operator == "**":
        return _extent(left) * right if isinstance(right, int) else 0
    for many, times in ((left, right), (right, left)):
        if isinstance(times, int) and not isinstance(many, int | float):
            return _extent(many) * times
    return _extent(left) + _extent(right)


def _extent(value: object) -> int:
    if isinstance(value, int):
        return value.bit_length()
    return len(value) if isinstance(value, str | bytes | Sequence) else 0


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
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _refuse(message: object) -> None:
    raise CallerError(f"the chat template refuses the messages: {message}")
