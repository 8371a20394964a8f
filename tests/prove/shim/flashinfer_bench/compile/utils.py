"""A Solution's files; we name packages by the sha256 of all that a build depends on."""

from bedstone.prove.write import write_sources
from bedstone.spec.solution import BuildSpec, Solution, SourceFile


def create_package_name(_solution, _prefix):
    raise NotImplementedError


def write_sources_to_path(path, sources):
    own = tuple(SourceFile(source.path, source.content) for source in sources)
    spec = BuildSpec(("python",), ("any",), f"{own[0].path}::run")
    package = write_sources(Solution("s", "d", "a", spec, own), path)
    # theirs has no folder for the package between
    for source in own:
        (path / source.path).parent.mkdir(parents=True, exist_ok=True)
        (package / source.path).rename(path / source.path)
    return [str(path / source.path) for source in own]
