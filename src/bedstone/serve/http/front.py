"""What every endpoint stands on: an engine, a vocabulary, and how the server is set up."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cached_property

from bedstone.checkpoint.chat import ChatTemplate
from bedstone.checkpoint.tokenizer import Detokenizer, Tokenizer
from bedstone.errors import BedstoneError
from bedstone.serve.http.bridge import Bridge
from bedstone.serve.http.forms import Form
from bedstone.serve.http.meters import Meters
from bedstone.serve.http.prompts import Prompter
from bedstone.serve.http.refusal import Refusal, bad, refusal
from bedstone.serve.http.run import Clock, Run
from bedstone.serve.http.settings import Settings
from bedstone.serve.http.workers import Workers
from bedstone.serve.requests import Constraint, Engine
from bedstone.serve.text import reasoning
from bedstone.serve.text.constraint import Grammars
from bedstone.serve.text.thought import BoundedThought
from bedstone.serve.text.tools.table import WRITINGS
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
        engine: Engine,
        bridge: Bridge,
        voice: Voice,
        settings: Settings,
        clock: Clock,
        now: Callable[[], datetime],
    ) -> None:
        self.engine = engine
        self.bridge = bridge
        self.settings = settings
        self.tokenizer = voice.tokenizer
        self.limits = engine.limits
        self.prompter = Prompter(voice.tokenizer, voice.template, self.limits.context, now)
        self.meters = Meters(engine.stats)
        self.workers = Workers()
        self.clock = clock
        self.now = now
        self.began = clock()
        self.created = int(now().timestamp())
        self.draining = False
        self.failed = False

    @cached_property
    def keep(self) -> frozenset[int]:
        """Special tokens whose text the readers of answers need."""
        tools = WRITINGS[self.settings.tools].markers if self.settings.tools else ()
        thoughts = reasoning.MARKERS if self.settings.reasoning else ()
        ids = (self.tokenizer.id_of(marker) for marker in (*tools, *thoughts))
        return frozenset(each for each in ids if each is not None)

    @cached_property
    def grammars(self) -> Grammars:
        """Grammars over the model's vocabulary; made when one is first asked for."""
        return Grammars(self.tokenizer, self.limits.vocab, self.tokenizer.eos, self.keep)

    def detokenizer(self) -> Detokenizer:
        """A stream of an answer's ids to text."""
        return Detokenizer(self.tokenizer, keep=self.keep)

    def run(self, *, counted: bool = True) -> Run:
        """Requests to be under way together; those that nobody asked for are not `counted`."""
        meters = self.meters if counted else None
        return Run(self.engine, self.bridge, meters, self.clock, self.settings.waiting_events)

    async def constraints(self, form: Form, count: int) -> Sequence[Constraint | None]:
        """What holds each of so many answers to a form, None where nothing does.

        Raises `Refusal`: its grammar is none, or takes too long.
        """
        held = await self._compiled(form.grammar, count)
        most = self.settings.usual.behavior.thinking_tokens
        if most is None or not form.thinks or "constraint" in self.limits.missing:
            return held
        tokenizer, vocab = self.tokenizer, self.limits.vocab
        return [
            BoundedThought(each, tokenizer, vocab, most, thinking=form.thinking) for each in held
        ]

    async def _compiled(self, grammar: str | None, count: int) -> Sequence[Constraint | None]:
        if grammar is None:
            return [None] * count
        if "constraint" in self.limits.missing:
            raise bad(
                "this package was compiled without a sampler that takes forms", code="unsupported"
            )
        seconds = self.settings.compile_seconds
        try:
            return await self.workers.run(lambda: self.grammars.compile(grammar, count), seconds)
        except TimeoutError:
            raise bad(f"the grammar takes more than {seconds} s to compile") from None
        except BedstoneError as error:
            raise refusal(error) from error

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
