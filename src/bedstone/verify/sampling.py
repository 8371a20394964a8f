"""Whether the record of a sampler fits the manifest beside it."""

from collections.abc import Iterator

from bedstone.errors import ManifestError
from bedstone.spec.dtype import DType
from bedstone.spec.fault import Fault, pointer
from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import Buffer, BufferKind, Dim, Fill, Manifest
from bedstone.spec.sampling import SAMPLING, Knobs
from bedstone.verify.protocol.axes import Axes

SETTINGS: dict[Fill, DType] = {
    "temperature": "f32",
    "top_k": "i32",
    "top_p": "f32",
    "min_p": "f32",
    "seed": "i64",
}
"""The fills of a sampler's settings, a value for each sequence, and their types."""

_WORD = 32


class _Form(Frozen):
    """What a buffer of the record has to be; `width` None where it is one value a sequence.

    A width is a number, or the name of a knob whose buffer is as wide.
    """

    kind: BufferKind
    dtype: DType
    width: str | None = None


_FORMS: dict[str, _Form] = {
    "edits": _Form("input", "i32"),
    "edit_token": _Form("input", "i32", "edit_token"),
    "edit_scale": _Form("input", "f32", "edit_token"),
    "edit_add": _Form("input", "f32", "edit_token"),
    "restricted": _Form("input", "i32"),
    "allowed": _Form("input", "i32", "allowed"),
    "report": _Form("input", "i32"),
    "logprob": _Form("output", "f32"),
    "top_token": _Form("output", "i32", "top_token"),
    "top_logprob": _Form("output", "f32", "top_token"),
}


def check_knobs(knobs: Knobs, manifest: Manifest) -> list[Fault]:
    """Everything that keeps a serving loop from using the record with a verified manifest."""
    faults = [
        fault for name, form in _FORMS.items() for fault in _knob(name, form, knobs, manifest)
    ]
    return [*faults, *_distinct(knobs), *_settings(manifest), *_vocabulary(knobs, manifest)]


def require_knobs(knobs: Knobs, manifest: Manifest) -> None:
    """Refuse a record that does not fit: a `ManifestError` that lists every fault, one a line."""
    faults = check_knobs(knobs, manifest)
    if faults:
        lines = "".join(f"\n  - {fault}" for fault in faults)
        raise ManifestError(f"`{SAMPLING}` does not fit manifest `{manifest.model}`:{lines}")


def _knob(name: str, form: _Form, knobs: Knobs, manifest: Manifest) -> Iterator[Fault]:
    called: str = getattr(knobs, name)
    buffer = manifest.buffers.get(called)
    if buffer is None:
        yield _fault("K-buffer", name, called, f"names `{called}`, expected a buffer")
        return
    if buffer.kind != form.kind or buffer.fill is not None or buffer.domain is not None:
        has = " with a fill" if buffer.fill else " with a domain" if buffer.domain else ""
        message = f"names a buffer of kind {buffer.kind}{has}, expected {form.kind} without either"
        yield _fault("K-kind", name, called, message)
    if buffer.dtype != form.dtype:
        message = f"names a buffer of {buffer.dtype}, expected {form.dtype}"
        yield _fault("K-element", name, called, message)
    wanted = _wanted(form, knobs, manifest)
    if not _over_groups(buffer, wanted, manifest):
        expected = ", ".join(map(str, (_groups(manifest), *wanted)))
        shape = ", ".join(map(str, buffer.shape))
        message = f"names a buffer of shape [{shape}], expected [{expected}]"
        yield _fault("K-shape", name, called, message)


def _groups(manifest: Manifest) -> str:
    return Axes.of(manifest).spelled("groups")


def _wanted(form: _Form, knobs: Knobs, manifest: Manifest) -> tuple[Dim, ...]:
    """What follows the sequences in a shape: nothing, or as much as the knob that says how wide."""
    if form.width is None:
        return ()
    like = manifest.buffers.get(getattr(knobs, form.width))
    wide = like.shape[1] if like is not None and len(like.shape) > 1 else "n"
    return (wide,)


def _over_groups(buffer: Buffer, wanted: tuple[Dim, ...], manifest: Manifest) -> bool:
    rest = buffer.shape[1:]
    whole = all(isinstance(extent, int) for extent in rest)
    return buffer.shape[0] == _groups(manifest) and rest == wanted and whole


def _distinct(knobs: Knobs) -> Iterator[Fault]:
    first: dict[str, str] = {}
    for name in _FORMS:
        called: str = getattr(knobs, name)
        other = first.setdefault(called, name)
        if other != name:
            yield _fault("K-distinct", name, called, f"names `{called}`, as `{other}` does")


def _settings(manifest: Manifest) -> Iterator[Fault]:
    """A sampler has an input for each setting."""
    filled = {b.fill: (name, b) for name, b in manifest.buffers.items() if b.fill is not None}
    for fill, dtype in SETTINGS.items():
        name, buffer = filled.get(fill, (None, None))
        if buffer is None:
            yield Fault("K-settings", "/buffers", (), f"no input has fill `{fill}`")
        elif buffer.dtype != dtype:
            yield Fault(
                "K-settings",
                pointer(("buffers", str(name), "dtype")),
                (f"buffer {name}",),
                f"buffer `{name}` has fill `{fill}` and dtype {buffer.dtype}, expected {dtype}",
            )


def _vocabulary(knobs: Knobs, manifest: Manifest) -> Iterator[Fault]:
    """A bit for each token that may be fed, where the manifest says which may."""
    allowed = manifest.buffers.get(knobs.allowed)
    tokens = [b.domain.max for b in manifest.buffers.values() if b.fill == "token" and b.domain]
    most = next((bound for bound in tokens if isinstance(bound, int)), None)
    if allowed is None or most is None or len(allowed.shape) < 2:
        return
    words = most // _WORD + 1
    if allowed.shape[1] != words:
        message = f"holds {allowed.shape[1]} words of a sequence, expected {words}: a bit a token"
        yield _fault("K-words", "allowed", knobs.allowed, message)


def _fault(rule: str, knob: str, buffer: str, message: str) -> Fault:
    return Fault(rule, pointer((knob,)), (f"buffer {buffer}",), f"`{knob}` {message}")
