"""The record beside a manifest that names the buffers of its sampler.

Wire format v7 has fills for temperature, top_k, top_p, min_p and seed; what else a request may ask
of a sampler goes into buffers that only this record tells apart.
"""

from collections.abc import Mapping

import msgspec

from bedstone.errors import ManifestError
from bedstone.spec.frozen import Frozen

SAMPLING = "sampling.json"


class Sampling(Frozen):
    """How a request's tokens are drawn from the logits [vocab] of each step.

    In this order:

    1. a token seen before, in the prompt or the output: divided by `repetition` where positive,
       else multiplied by it;
    2. plus `bias` of the token; less `presence` where the output has it, and `frequency` times as
       often as the output has it;
    3. tokens that the request's constraint does not allow are left out;
    4. `temperature` 0 takes the likeliest (the first of equals) whatever follows; else logits are
       divided by it;
    5. the `top_k` likeliest are kept (0 or -1: all), of these the fewest that reach `top_p` of
       what all of these have together, of these all with `min_p` times the likeliest's probability
       at least; one of them at least;
    6. one is drawn by a number in [0, 1) that `seed` and the token's position in its sequence
       decide and nothing else.

    `logprobs` None asks for none; else a token comes with its own log-probability and with that
    many of the likeliest, all of them of the model's own logits, before step 1. What any other
    number means is in docs/kernels.md: all have an answer.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0
    repetition: float = 1.0
    presence: float = 0.0
    frequency: float = 0.0
    bias: Mapping[int, float] = {}
    logprobs: int | None = None


LIKELIEST = Sampling()
"""The likeliest token, step after step."""


def signed(seed: int) -> int:
    """The low 64 bits of a seed as the signed number that an input of seeds takes."""
    return (seed + 2**63) % 2**64 - 2**63


class Knobs(Frozen, forbid_unknown_fields=True):
    """Names of buffers; shapes are over the sequences of a call, `groups`.

    `edits` i32 [groups] says how many of a sequence's edits count; the edit e makes of the logit
    of token `edit_token` i32 [groups, e]: scaled by `edit_scale` f32 (a positive logit divided by
    it, another multiplied), then `edit_add` f32 added. `restricted` i32 [groups] is 1 where only
    tokens with their bit set in `allowed` i32 [groups, ceil(vocab / 32)], lowest bit first, may
    come. `report` i32 [groups] asks for log-probabilities of the unedited logits: -1 for none,
    else for that of the token drawn in `logprob` f32 [groups], and for as many of the likeliest in
    `top_token` i32 and `top_logprob` f32 [groups, most], most likely first.
    """

    edits: str
    edit_token: str
    edit_scale: str
    edit_add: str
    restricted: str
    allowed: str
    report: str
    logprob: str
    top_token: str
    top_logprob: str

    @property
    def buffers(self) -> frozenset[str]:
        """All of them."""
        return frozenset(getattr(self, name) for name in self.__struct_fields__)


def emit_knobs(knobs: Knobs) -> bytes:
    """The record's file contents."""
    return msgspec.json.format(msgspec.json.encode(knobs), indent=2) + b"\n"


def parse_knobs(text: bytes, where: str) -> Knobs:
    """Read a record's file contents; `where` names the file in errors.

    Raises `ManifestError`: the text is no such record.
    """
    try:
        return msgspec.json.decode(text, type=Knobs)
    except msgspec.MsgspecError as error:
        raise ManifestError(f"`{where}` is no record of a sampler: {error}") from error
