"""A survey as one page of HTML: the facts as data, and the scripts and styles that draw them."""

import html
import json
from importlib.resources import files
from string import Template

from bedstone.build.page.facts import page_facts
from bedstone.build.survey import Survey

SCRIPTS = ("model.js", "chart.js", "panel.js", "main.js", "events.js")
"""The page's scripts, in the order they are put together."""


def emit_page(survey: Survey) -> str:
    """The page: it asks the network for nothing and says so in its policy."""
    facts = json.dumps(page_facts(survey), ensure_ascii=False, separators=(",", ":"))
    return Template(_text("page.html")).substitute(
        title=html.escape(f"{survey.config.name}: the step"),
        style=_text("page.css"),
        facts=_in_script(facts),
        script="\n".join(map(_text, SCRIPTS)),
    )


def _in_script(text: str) -> str:
    """JSON that no parser of HTML takes for markup: a model's name may be anything."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _text(name: str) -> str:
    return (files("bedstone.build.page") / name).read_text(encoding="utf-8")
