"""Manifest text to types and back: strict on the way in, canonical on the way out.

Reading is three passes, each of which stops at its first fault: text to a JSON value, constants,
types. Written text is canonical: fields in the grammar's order, names in byte order, defaults left
out, numbers in their fewest digits; equal manifests have equal bytes.
"""

from bedstone.spec.constants import expand
from bedstone.spec.decode import decoder
from bedstone.spec.encode import encoder
from bedstone.spec.fault import Fault, ParseError, found, pointer
from bedstone.spec.grammar import MANIFEST
from bedstone.spec.manifest import Manifest
from bedstone.spec.misfit import MisfitError
from bedstone.spec.schema import schema
from bedstone.spec.text import parse_json, require_json

__all__ = ["parse", "parse_value", "schema", "serialize"]

_decode = decoder(MANIFEST)
_encode = encoder(MANIFEST)
_NAMED = {
    ("vars",): "var",
    ("states",): "state",
    ("buffers",): "buffer",
    ("modules",): "module",
    ("ops",): "op",
    ("programs",): "program",
    ("topology", "groups"): "group",
}


def parse(text: bytes | str) -> Manifest:
    """The manifest of a text (UTF-8 where bytes), which is untrusted.

    A text that is no manifest is a `ParseError`, whose `fault` says where and why.
    """
    return _typed(parse_json(text))


def parse_value(value: object) -> Manifest:
    """The manifest of an already decoded JSON value; refused as `parse` refuses a text."""
    require_json(value)
    return _typed(value)


def serialize(manifest: Manifest) -> str:
    """The canonical text of `manifest`, without a newline at its end."""
    return _encode(manifest, "\n")


def _typed(value: object) -> Manifest:
    if not isinstance(value, dict):
        message = f"expected a manifest as an object, found {found(value)}"
        raise ParseError(Fault("P3", "", (), message))
    try:
        manifest: Manifest = _decode(expand(value))
    except MisfitError as error:
        raise ParseError(_fault(error)) from None
    return manifest


def _fault(misfit: MisfitError) -> Fault:
    trail = misfit.trail[::-1]
    objects = tuple(
        f"{kind} {trail[len(section)]}"
        for section, kind in _NAMED.items()
        if tuple(trail[: len(section)]) == section and len(trail) > len(section)
    )
    return Fault(misfit.rule, pointer(trail), objects, misfit.message)
