"""Kernels among a set's Solutions, compiled before they are run; a GPU's need no GPU for that."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bedstone.errors import BedstoneError
from bedstone.prove.results import ResultError
from bedstone.prove.sandbox.calling import read_calling
from bedstone.prove.sandbox.cuda import cuda_unit
from bedstone.prove.sandbox.native import native_unit
from bedstone.prove.write import CALL, C, kernel_device, write_sources
from bedstone.spec.solution import Solution
from bedstone.target.cache import write_whole
from bedstone.target.hardware import HardwareSet, read_sets
from bedstone.target.nvrtc import compile_cubins, cubin_path, find_nvrtc
from bedstone.target.side_by_side import Told, side_by_side, untold
from bedstone.target.sources import read_sources
from bedstone.target.toolchain import Unit, compile_unit, find_compiler, shared_path

_DEFINE = "-D"


@dataclass
class Built:
    """How many modules there are, how many had to be compiled, and why others do not compile."""

    modules: int = 0
    compiled: int = 0
    failed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Module:
    """What one module is compiled from, and for; `solution` is one of those that need it."""

    solution: Solution
    unit: Unit
    arch: str | None


def build_kernels(
    solutions: Iterable[Solution], cache: Path, library: Path, told: Told = untold
) -> Built:
    """Compile every kernel among Solutions, unless that has been done.

    Args:
        solutions: All of a set.
        cache: Where the modules of Solutions are kept.
        library: Where those of hardware sets are: one that is there already is taken.
        told: Is called with how many are done, and of how many.

    Returns:
        What became of them; one that fails is told of and stops no other.
    """
    built = Built()
    before = {path.name for path in cache.glob("*")}
    with tempfile.TemporaryDirectory(prefix="bedstone-build-") as folder:
        modules = list(_modules(solutions, Path(folder), built))
        sets = read_sets()

        def build(module: Module) -> Path:
            try:
                return _take(module, cache, library, sets) or _compile(module, cache)
            except BedstoneError as error:
                built.failed[module.solution.name] = str(error)
                return cache

        made = side_by_side(build, modules, told)
    built.modules = len(modules)
    built.compiled = len({path.name for path in made} - before - {cache.name})
    return built


def _modules(solutions: Iterable[Solution], folder: Path, built: Built) -> Iterator[Module]:
    """Each module once: Solutions differ in what they call more often than in their code."""
    seen = set()
    for solution in filter(kernel_device, solutions):
        files = frozenset((s.path, s.content) for s in solution.sources if s.path != CALL)
        options = tuple(sorted(solution.spec.options.items()))
        try:
            package = write_sources(solution, folder)
            calling = read_calling(package / CALL)
        except ResultError as error:
            built.failed[solution.name] = str(error)
            continue
        arch = None if calling.gpu is None else calling.gpu.arch
        key = (solution.spec.languages, solution.spec.entry_file, options, arch, files)
        if key not in seen:
            seen.add(key)
            yield Module(solution, _unit(solution, package), arch)


def _unit(solution: Solution, package: Path) -> Unit:
    of = native_unit if _is_c(solution) else cuda_unit
    return of(package / solution.spec.entry_file, solution.spec.options)


def _is_c(solution: Solution) -> bool:
    return solution.spec.languages == (C,)


def _compile(module: Module, cache: Path) -> Path:
    if module.arch is None:
        return compile_unit(module.unit, cache=cache, compiler=find_compiler())
    (path,) = compile_cubins([module.unit], module.arch, cache=cache, nvrtc=find_nvrtc())
    return path


def _take(
    module: Module, cache: Path, library: Path, sets: Mapping[str, HardwareSet]
) -> Path | None:
    """Put a hardware set's own module where the Solution's is looked for, if they are the same."""
    unit = _own_unit(module.solution, sets)
    if unit is None:
        return None
    known, path = _place(unit, module.arch, library), _place(module.unit, module.arch, cache)
    if not known.exists():
        return None
    if not path.exists():
        write_whole(path, known.read_bytes())
    return path


def _place(unit: Unit, arch: str | None, cache: Path) -> Path:
    """Where a cache keeps what a unit is compiled to."""
    if arch is None:
        return shared_path(unit, cache=cache, compiler=find_compiler())
    return cubin_path(unit, arch, cache=cache, nvrtc=find_nvrtc())


def _own_unit(solution: Solution, sets: Mapping[str, HardwareSet]) -> Unit | None:
    """What the module of one of our kernels is compiled from in its set; None of other code."""
    hardware = sets.get(solution.spec.target_hardware[0])
    if hardware is None:
        return None
    sources = read_sources(hardware)
    flags = solution.spec.options.get("cflags" if _is_c(solution) else "cuda_cflags", ())
    defines = [flag.removeprefix(_DEFINE).split("=", 1) for flag in flags[len(sources.flags) :]]
    files = {source.path: source.content for source in solution.sources if source.path != CALL}
    found = {name: _text(name, sources.folders) for name in files}
    if flags[: len(sources.flags)] != sources.flags or found != files:
        return None
    return sources.unit(solution.spec.entry_file, dict(defines))


def _text(name: str, folders: tuple[Path, ...]) -> str | None:
    """The file of that name which counts."""
    path = next((f / name for f in folders if (f / name).is_file()), None)
    return None if path is None else path.read_text(encoding="utf-8")
