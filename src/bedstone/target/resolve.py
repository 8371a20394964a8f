"""Which model's record serves a checkpoint: every candidate, and why it was kept or dropped.

Rows with a `hidden_size` go before rows without; among models that claim the checkpoint alike the
checkpoint's name decides; a folder of the checkpoint's quantization goes before none. Nothing is
ever decided by order: what is left undecided is an error that says how to decide it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bedstone.errors import CallerError, TargetError
from bedstone.spec.record import nearest
from bedstone.spec.target import FACTS, ModelType
from bedstone.target.models import Model
from bedstone.target.pin import NO_PIN, Pin
from bedstone.target.records import words

Tier = Literal["exact", "wildcard"]


@dataclass(frozen=True, slots=True)
class Subject:
    """A checkpoint as resolution sees it.

    `facts` are sizes by the names of a `config.json`, `quantization` is the format of most of its
    weights, `names` are what it is called, the most telling first: never a whole path.
    """

    model_type: str
    facts: Mapping[str, int]
    quantization: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row of a model's record, with a quantization it has a folder for or with none."""

    model: str
    row: ModelType
    match_names: tuple[str, ...]
    quantization: str | None

    @property
    def tier(self) -> Tier:
        """Whether the row names a hidden size."""
        return "wildcard" if self.row.hidden_size is None else "exact"

    def __str__(self) -> str:
        return f"{self.model}/{self.quantization or 'any'}"


@dataclass(frozen=True, slots=True)
class Judged:
    """A candidate and why it was dropped; None where it was not."""

    candidate: Candidate
    dropped: str | None


@dataclass(frozen=True, slots=True)
class Resolution:
    """What came of all candidates.

    `chosen` is None where `problem` says why. `borrowed` says that the model has match names and
    none is in the checkpoint's name: another model's kernels and policy serve it.
    """

    chosen: Candidate | None
    judged: tuple[Judged, ...]
    borrowed: bool = False
    problem: str | None = None

    def require(self) -> Candidate:
        """The candidate chosen; a `TargetError` where there is none."""
        if self.chosen is None:
            raise TargetError(self.problem)
        return self.chosen


def resolve(models: Mapping[str, Model], subject: Subject, pin: Pin = NO_PIN) -> Resolution:
    """Judge every row of every model; a pin on a model there is none of is a `CallerError`."""
    _require_pin(pin, models)
    judged = [Judged(c, _misfit(c, subject, pin)) for c in _candidates(models.values())]
    judged = _best_tier(judged)
    fitting = sorted({j.candidate.model for j in judged if j.dropped is None})
    if not fitting:
        return Resolution(None, tuple(judged), problem=_nothing(subject, pin, judged))
    winner, why = _named(fitting, models, subject)
    if winner is None:
        return Resolution(None, tuple(judged), problem=_ambiguous(subject, fitting, models, why))
    judged = _dropped(judged, lambda c: c.model != winner, f"`{winner}` {why}")
    judged = _best_quantization(judged)
    chosen = next(j.candidate for j in judged if j.dropped is None)
    own = chosen.match_names
    borrowed = bool(own) and not any(matches(own, name) for name in subject.names)
    return Resolution(chosen, tuple(judged), borrowed)


def matches(match_names: Iterable[str], name: str) -> bool:
    """Whether one of the match names stands in `name`, whole word for whole word."""
    return any(contains(words(name), words(match)) for match in match_names)


def contains(text: Sequence[str], part: Sequence[str]) -> bool:
    """Whether `part` is a run of the words of `text`."""
    last = len(text) - len(part)
    return any(tuple(text[at : at + len(part)]) == tuple(part) for at in range(last + 1))


def _candidates(models: Iterable[Model]) -> Iterable[Candidate]:
    for model in models:
        routing = model.record.routing
        for row in routing.model_types:
            for quantization in (*model.quantizations, None):
                yield Candidate(model.name, row, routing.match_names, quantization)


def _require_pin(pin: Pin, models: Mapping[str, Model]) -> None:
    if pin.model is None:
        return
    if pin.model not in models:
        meant = nearest(pin.model, list(models))
        known = ", ".join(f"`{name}`" for name in models)
        hint = f"did you mean `{meant}`?" if meant else f"expected one of {known}"
        raise CallerError(f"no model `{pin.model}`: {hint}")
    own = models[pin.model].quantizations
    if pin.quantization is not None and pin.quantization not in own:
        known = ", ".join(f"`{name}`" for name in own) or "none"
        raise CallerError(
            f"model `{pin.model}` has no folder for quantization `{pin.quantization}`: "
            f"it has {known}"
        )


def _misfit(candidate: Candidate, subject: Subject, pin: Pin) -> str | None:
    """What keeps a candidate from serving the checkpoint, all others aside."""
    if pin.model not in {None, candidate.model}:
        return f"`{pin.model}` is pinned"
    row = candidate.row
    if row.model_type != subject.model_type:
        return f"model_type is `{subject.model_type}`, wanted `{row.model_type}`"
    wrong = [
        f"{fact} is {subject.facts.get(fact, 'unknown')}, wanted {wanted}"
        for fact in FACTS
        if (wanted := getattr(row, fact)) is not None and wanted != subject.facts.get(fact)
    ]
    if wrong:
        return "; ".join(wrong)
    if pin.quantization is not None and candidate.quantization != pin.quantization:
        return f"quantization `{pin.quantization}` is pinned"
    if pin.quantization is None and candidate.quantization not in {None, subject.quantization}:
        return f"quantization is `{subject.quantization}`, wanted `{candidate.quantization}`"
    return None


def _best_tier(judged: list[Judged]) -> list[Judged]:
    exact = any(j.dropped is None and j.candidate.tier == "exact" for j in judged)
    why = "a row with the checkpoint's hidden_size goes before one without"
    return _dropped(judged, lambda c: exact and c.tier == "wildcard", why)


def _best_quantization(judged: list[Judged]) -> list[Judged]:
    """Of one model's rows: its own quantization before none, then the row that says most."""
    left = [j.candidate for j in judged if j.dropped is None]
    own = any(c.quantization is not None for c in left)
    why = "a folder of the checkpoint's quantization goes before none"
    judged = _dropped(judged, lambda c: own and c.quantization is None, why)
    left = [j.candidate for j in judged if j.dropped is None]
    most = max(left, key=lambda c: sum(getattr(c.row, fact) is not None for fact in FACTS))
    why = "another row of the model says more of the checkpoint"
    return _dropped(judged, lambda c: c is not most, why)


def _dropped(judged: list[Judged], where: Callable[[Candidate], bool], why: str) -> list[Judged]:
    return [
        replace(j, dropped=why) if j.dropped is None and where(j.candidate) else j for j in judged
    ]


def _named(
    fitting: Sequence[str], models: Mapping[str, Model], subject: Subject
) -> tuple[str | None, str]:
    """The model that the first telling name of the checkpoint singles out, and why or why none."""
    if len(fitting) == 1:
        return fitting[0], "is the only one left"
    for name in subject.names:
        hits = [m for m in fitting if matches(models[m].record.routing.match_names, name)]
        if len(hits) == 1:
            return hits[0], f"has a match name in `{name}`"
        if hits:
            return None, f"`{name}` holds match names of {_listed(hits)}"
    return None, f"no match name of theirs is in {_listed(subject.names)}"


def _ambiguous(
    subject: Subject, fitting: Sequence[str], models: Mapping[str, Model], why: str
) -> str:
    sides = "; ".join(
        f"`{name}` (match names {_listed(models[name].record.routing.match_names) or 'none'})"
        for name in fitting
    )
    return (
        f"{len(fitting)} models claim {_described(subject)} alike: {sides}; {why}. Nothing is "
        f"chosen by order: pin one with `--target auto/{fitting[0]}`, name the checkpoint so that "
        f"one match name is in its name, or add to [routing] match_names of one record"
    )


def _nothing(subject: Subject, pin: Pin, judged: Iterable[Judged]) -> str:
    """Why no candidate is left: of those that came nearest, what they wanted."""
    wanted = {
        f"`{j.candidate.model}`: {j.dropped}"
        for j in judged
        if pin.model == j.candidate.model
        or (pin.model is None and j.candidate.row.model_type == subject.model_type)
    }
    known = sorted({j.candidate.row.model_type for j in judged})
    detail = "; ".join(sorted(wanted)) or f"known model types are {_listed(known)}"
    return f"no model of the target serves {_described(subject)}: {detail}"


def _described(subject: Subject) -> str:
    hidden = subject.facts.get("hidden_size", "unknown")
    return (
        f"`{subject.names[0]}` (model_type `{subject.model_type}`, hidden_size {hidden}, "
        f"quantization `{subject.quantization}`)"
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
