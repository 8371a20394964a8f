"""Solutions as JSON: FlashInfer-Bench's one language a Solution, SOL-ExecBench's several."""

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

from bedstone.spec.dialect import Dialect, Emission, Loss, Reading
from bedstone.spec.dialect.members import members, unless
from bedstone.spec.fault import found, shown
from bedstone.spec.fields import Fields, Trail
from bedstone.spec.finding import Findings
from bedstone.spec.solution import BuildSpec, Solution, SourceFile

_FIB_LANGUAGES = frozenset(("python", "triton", "cpp", "cuda", "tilelang"))
_BINDINGS = (None, "tvm-ffi", "torch")
_C, _NEAREST = "c", "cpp"
"""C has no name of its own in FlashInfer-Bench: there the entry's file tells it from C++."""


def parse_solution(value: object, dialect: Dialect | None = None) -> Reading[Solution]:
    """The Solution of a decoded JSON value.

    Args:
        value: The value.
        dialect: Whose default of `destination_passing_style` holds; detected where None.

    Returns:
        The Solution and how it was understood.
    """
    findings = Findings()
    dialect = dialect or detect_solution(value)
    fields = Fields(value, (), findings)
    solution = Solution(
        name=fields.text("name"),
        definition=fields.text("definition"),
        author=fields.text("author"),
        spec=_spec(Fields(fields.take("spec"), ("spec",), findings), dialect),
        sources=tuple(_source(item, trail, findings) for item, trail in fields.items("sources")),
        description=fields.maybe_text("description"),
        extra=fields.rest(),
    )
    _check_sources(solution, findings)
    return Reading(solution, dialect, findings.all())


def detect_solution(value: object) -> Dialect:
    """SOL-ExecBench's where languages come as a list or with compiler options, else the others'."""
    spec = value.get("spec") if isinstance(value, dict) else None
    if not isinstance(spec, dict):
        return "fib"
    if {"languages", "compile_options"} & spec.keys():
        return "sol"
    return "flashinfer" if spec.get("language") in ("cutedsl", "cutlass", "cutile") else "fib"


def _spec(fields: Fields, dialect: Dialect) -> BuildSpec:
    languages = fields.texts("languages")
    if not languages:
        languages = (fields.text("language").lower(),)
    entry_point = _entry_point(fields)
    if languages == (_NEAREST,) and entry_point.partition("::")[0].endswith(".c"):
        languages = (_C,)
    passing = fields.flag("destination_passing_style", default=dialect == "fib")
    binding = fields.maybe_text("binding")
    if binding not in _BINDINGS:
        message = f"expected `tvm-ffi`, `torch` or null, found {found(binding)}"
        fields.note("error", message, "binding")
    target = fields.texts("target_hardware")
    if not target:
        fields.note("error", "expected at least one name", "target_hardware")
    return BuildSpec(
        languages=languages,
        target_hardware=target,
        entry_point=entry_point,
        dependencies=fields.texts("dependencies"),
        destination_passing=passing,
        binding=binding,
        options=_options(fields),
        extra=fields.rest(),
    )


def _entry_point(fields: Fields) -> str:
    entry = fields.text("entry_point")
    file, mark, function = entry.partition("::")
    if entry and not (file and mark and function and "::" not in function):
        message = f"expected `file::function`, found {found(entry)}"
        fields.note("error", message, "entry_point")
    return entry


def _options(fields: Fields) -> dict[str, tuple[str, ...]]:
    value = fields.take("compile_options")
    if value is None:
        return {}
    below = Fields(value, (*fields.trail, "compile_options"), fields.findings)
    return {name: below.texts(name) for name in tuple(below.rest())}


def _source(value: Any, trail: Trail, findings: Findings) -> SourceFile:  # noqa: ANN401
    fields = Fields(value, trail, findings)
    content = fields.maybe_text("content")
    if content is None:
        fields.note("error", "expected the file's text", "content")
    return SourceFile(fields.text("path"), content or "")


def _check_sources(solution: Solution, findings: Findings) -> None:
    """Paths must be distinct files below the Solution's own folder, the entry's among them."""
    seen: set[PurePosixPath] = set()
    if not solution.sources:
        findings.add("error", ("sources",), "expected at least one file")
    for at, source in enumerate(solution.sources):
        trail: Trail = ("sources", at, "path")
        path = PurePosixPath(source.path)
        if not _stays_below(source.path):
            message = f"expected a relative path without `..`, found `{shown(source.path)}`"
            findings.add("error", trail, message)
        elif path in seen:
            findings.add("error", trail, f"`{shown(source.path)}` is given twice")
        seen.add(path)
    entry = solution.spec.entry_file
    if entry and PurePosixPath(entry) not in seen:
        message = f"`{shown(entry)}` is not among the sources"
        findings.add("error", ("spec", "entry_point"), message)


def _stays_below(path: str) -> bool:
    """Whether a path names a file below the folder it is joined to, on any system."""
    parts = path.replace("\\", "/").split("/")
    drive = parts[0].endswith(":")
    return bool(path) and "\\" not in path and not drive and ".." not in parts and bool(parts[0])


def emit_solution(solution: Solution, dialect: Dialect) -> Emission:
    """The Solution in a dialect, and what that dialect cannot say."""
    losses: list[Loss] = []
    return Emission(
        members(
            ("name", solution.name),
            ("definition", solution.definition),
            ("author", solution.author),
            ("description", solution.description),
            ("spec", _emit_spec(solution.spec, dialect, losses)),
            ("sources", [{"path": s.path, "content": s.content} for s in solution.sources]),
            extra=solution.extra,
        ),
        tuple(losses + _empty_files(solution, dialect)),
    )


def _emit_spec(spec: BuildSpec, dialect: Dialect, losses: list[Loss]) -> dict[str, Any]:
    options = {name: list(flags) for name, flags in spec.options.items()}
    return members(
        *_LANGUAGES[dialect](spec, losses),
        ("target_hardware", list(spec.target_hardware)),
        ("entry_point", spec.entry_point),
        ("dependencies", list(spec.dependencies)),
        ("destination_passing_style", spec.destination_passing),
        ("binding", spec.binding),
        ("compile_options", unless(options, {})),
        extra=spec.extra,
    )


def _one_language(spec: BuildSpec, losses: list[Loss]) -> list[tuple[str, Any]]:
    first = _SOL_TO_FIB.get(spec.languages[0], spec.languages[0])
    if first == _C and spec.entry_file.endswith(".c"):
        return [("language", _NEAREST)]
    if len(spec.languages) > 1 or first != spec.languages[0]:
        given = ", ".join(spec.languages)
        losses.append(Loss("/spec/languages", f"`{given}` becomes `{first}`"))
    if first not in _FIB_LANGUAGES:
        losses.append(Loss("/spec/language", f"`{first}` is not among its own", fatal=True))
    if spec.options:
        losses.append(Loss("/spec/compile_options", "kept, and ignored by its readers"))
    return [("language", first)]


def _any_language(spec: BuildSpec, _losses: list[Loss]) -> list[tuple[str, Any]]:
    return [("language", spec.languages[0])]


def _languages(spec: BuildSpec, losses: list[Loss]) -> list[tuple[str, Any]]:
    renamed = [_FIB_TO_SOL.get(name, name) for name in spec.languages]
    for old, new in zip(spec.languages, renamed, strict=True):
        if old != new:
            losses.append(Loss("/spec/language", f"`{old}` becomes `{new}`"))
    return [("languages", renamed)]


def _empty_files(solution: Solution, dialect: Dialect) -> list[Loss]:
    if dialect != "fib":
        return []
    return [
        Loss(f"/sources/{at}/content", f"`{source.path}` is empty", fatal=True)
        for at, source in enumerate(solution.sources)
        if not source.content
    ]


_SOL_TO_FIB = {"pytorch": "python", "cuda_cpp": "cuda", "cutlass": "cuda", "cublas": "cuda"}
_FIB_TO_SOL = {"python": "pytorch", "cuda": "cuda_cpp", "cpp": "cuda_cpp"}
_LANGUAGES: dict[Dialect, Callable[[BuildSpec, list[Loss]], list[tuple[str, Any]]]] = {
    "fib": _one_language,
    "flashinfer": _any_language,
    "sol": _languages,
}
