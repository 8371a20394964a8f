"""What every endpoint stands on: an engine, a vocabulary, and how the server is set up."""

from collections.abc import Callable
from datetime import datetime

from bedstone.checkpoint.chat import ChatTemplate
from bedstone.checkpoint.tokenizer import Detokenizer, Tokenizer
from bedstone.serve.http.bridge import Bridge
from bedstone.serve.http.forms import Form
from bedstone.serve.http.meters import Meters
from bedstone.serve.http.prompts import Prompter
from bedstone.serve.http.refusal import Refusal, bad
from bedstone.serve.http.run import Clock, Run
from bedstone.serve.http.settings import Settings
from bedstone.serve.link.link import Guide, Link
from bedstone.serve.text import reasoning
from bedstone.serve.text.tools.table import WRITINGS
from bedstone.serve.workers import Workers
from bedstone.spec.frozen import Frozen


class Voice(Frozen):
    """How a model reads and writes."""

    tokenizer: Tokenizer
    template: ChatTemplate | None


class Front:
    """The parts that endpoints share.

    `clock` is the engine's; `now` is the time of day.
    """

    def __init__(
        self,
        link: Link,
        bridge: Bridge,
        voice: Voice,
        settings: Settings,
        clock: Clock,
        now: Callable[[], datetime],
    ) -> None:
        self.link = link
        self.bridge = bridge
        self.settings = settings
        self.tokenizer = voice.tokenizer
        self.limits = link.limits
        self.prompter = Prompter(voice.tokenizer, voice.template, self.limits.context, now)
        self.meters = Meters()
        self.workers = Workers()
        self.keep = kept(voice.tokenizer, settings)
        self.clock = clock
        self.now = now
        self.began = clock()
        self.created = int(now().timestamp())
        self.draining = False
        self.failed = False

    def detokenizer(self) -> Detokenizer:
        """A stream of an answer's ids to text."""
        return Detokenizer(self.tokenizer, keep=self.keep)

    def run(self, *, counted: bool = True) -> Run:
        """Requests to be under way together; those that nobody asked for are not `counted`."""
        meters = self.meters if counted else None
        return Run(self.link, self.bridge, meters, self.clock, self.settings.waiting_events)

    def guide(self, form: Form) -> Guide | None:
        """What holds an answer to a form, None where nothing does.

        Raises `Refusal`: the package takes no forms.
        """
        if "constraint" in self.limits.missing:
            if form.grammar is not None:
                raise bad(
                    "this package was compiled without a sampler that takes forms",
                    code="unsupported",
                )
            return None
        thought = self.settings.usual.behavior.thinking_tokens if form.thinks else None
        if form.grammar is None and thought is None:
            return None
        return Guide(grammar=form.grammar, thought=thought, thinking=form.thinking)

    def require_model(self, name: str | None) -> None:
        """Refuse a request for another model.

        Raises `Refusal`: as said.
        """
        if name not in {None, self.settings.model}:
            raise Refusal(
                404,
                f"the model `{name}` is not served here: expected `{self.settings.model}`",
                param="model",
                code="model_not_found",
            )


def kept(tokenizer: Tokenizer, settings: Settings) -> frozenset[int]:
    """Special tokens whose text the readers of answers need."""
    tools = WRITINGS[settings.tools].markers if settings.tools else ()
    thoughts = reasoning.MARKERS if settings.reasoning else ()
    ids = (tokenizer.id_of(marker) for marker in (*tools, *thoughts))
    return frozenset(each for each in ids if each is not None)
