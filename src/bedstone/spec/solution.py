"""One implementation of a Definition: its sources and how they are built and called."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bedstone.spec.fields import Extra


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a Solution; `path` is relative and stays below the Solution's own folder."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class BuildSpec:
    """How a Solution is built and called.

    `languages` is one name in FlashInfer-Bench, several in SOL-ExecBench. `entry_point` is
    `file::function`. A `destination_passing` entry is given its outputs after its inputs and fills
    them; any other returns them. `options` are compiler flags by tool.
    """

    languages: tuple[str, ...]
    target_hardware: tuple[str, ...]
    entry_point: str
    dependencies: tuple[str, ...] = ()
    destination_passing: bool = True
    binding: str | None = None
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    extra: Extra = field(default_factory=dict)

    @property
    def entry_file(self) -> str:
        """The file that holds the entry."""
        return self.entry_point.partition("::")[0]


@dataclass(frozen=True, slots=True)
class Solution:
    """An implementation of the Definition named `definition`."""

    name: str
    definition: str
    author: str
    spec: BuildSpec
    sources: tuple[SourceFile, ...]
    description: str | None = None
    extra: Extra = field(default_factory=dict)
