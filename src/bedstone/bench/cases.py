"""What is timed: a grid of decode steps, and prompts. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from bedstone.errors import CallerError
from bedstone.spec.package import Lock

Kind = Literal["decode", "prefill"]

MOST_STEPS = 64
"""Steps that are timed as one, so that a caller's part in them is small."""

_SAMPLE_SECONDS = 0.03
_DRIFT = 8
"""A sample's steps go over this part of the context they are centred on."""


@dataclass(frozen=True, slots=True)
class Case:
    """A step of `batch` sequences that attend `context` positions, or a prompt of `context`."""

    kind: Kind
    batch: int
    context: int

    def __str__(self) -> str:
        if self.kind == "prefill":
            return f"prefill of {self.context}"
        return f"decode, batch {self.batch}, context {self.context}"

    @property
    def tokens(self) -> int:
        """Tokens that go in at once."""
        return self.context if self.kind == "prefill" else self.batch


@dataclass(frozen=True, slots=True)
class Grid:
    """The sizes to time."""

    batches: Sequence[int]
    contexts: Sequence[int]
    prefills: Sequence[int] = ()

    def cases(self, lock: Lock) -> tuple[Case, ...]:
        """The cases of a package, small batches first; prompts after all steps.

        Raises `CallerError`: one is beyond what the package serves.
        """
        found = tuple(self._cases())
        for case in found:
            if case.batch > lock.sequences:
                raise CallerError(
                    f"batch {case.batch}: the package decodes up to {lock.sequences} sequences; "
                    f"compile it with `--sequences {case.batch}`"
                )
            if case.context > lock.context:
                raise CallerError(f"context {case.context}: the package serves {lock.context}")
        if not found:
            raise CallerError("nothing to time: expected a batch and a context, or a prompt")
        return found

    def _cases(self) -> Iterator[Case]:
        for batch in self.batches:
            for context in self.contexts:
                yield Case("decode", batch, context)
        for prompt in self.prefills:
            yield Case("prefill", 1, prompt)


def parse_sizes(option: str, text: str) -> tuple[int, ...]:
    """Numbers above 0 from `1,8,64`; nothing from an empty text. Others are a `CallerError`."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() and int(part) for part in parts):
        raise CallerError(f"`{option}` is `{text}`: expected numbers above 0, such as `1,8,64`")
    return tuple(dict.fromkeys(map(int, parts)))


def steps_of_a_sample(case: Case, step_seconds: float) -> int:
    """How many steps to time as one: enough to be timed well, few enough to stay about there."""
    wanted = round(_SAMPLE_SECONDS / max(step_seconds, 1e-9))
    return max(1, min(MOST_STEPS, wanted, case.context // _DRIFT))


def first_length(case: Case, steps: int, most: int) -> int:
    """The length of the sequences before the first of the steps, which centre on the context.

    The step before them, which is not timed, is the one that makes it that long; `most` is the
    longest sequence that is served.
    """
    return max(1, min(case.context - 1 - (steps - 1) // 2, most - steps))


def tokens_needed(cases: Iterable[Case], lock: Lock) -> int:
    """Tokens of the pages that the largest case takes."""
    slack = {"decode": MOST_STEPS, "prefill": 1}
    return max(case.batch * lock.pages(case.context + slack[case.kind]) for case in cases)
