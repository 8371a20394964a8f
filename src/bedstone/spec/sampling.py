"""The record beside a manifest that names the buffers of its sampler.

Wire format v7 has fills for temperature, top_k, top_p, min_p and seed; what else a request may ask
of a sampler goes into buffers that only this record tells apart.
"""

import msgspec

from bedstone.errors import ManifestError
from bedstone.spec.frozen import Frozen

SAMPLING = "sampling.json"


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
