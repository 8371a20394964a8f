"""Forms: who writes the quantized form of each tensor, and who still needs its values.

A tensor that a product reads quantized is quantized once, for every view of it. Its producers write
the codes if the lane has such launches (`fuse_quant`); else a `Quantize` precedes the first reader.
Values are written only where somebody reads them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bedstone.lane.facts import Facts
from bedstone.lane.launch import Form, Launch, Quantize, Read, ToBuf, ToScratch
from bedstone.lane.schedule import Step
from bedstone.lane.shim import Shim
from bedstone.lane.touch import reads_of, touches
from bedstone.lane.views import View, memory_of, quant_in_place


@dataclass(frozen=True, slots=True)
class Forms:
    """Chooses the forms of one step's results."""

    steps: tuple[Step, ...]
    facts: Facts
    shim: Shim
    views: Mapping[str, View]

    def chosen(self) -> tuple[Step, ...]:
        """The steps, each result in the forms its readers want, and the quantizes they need."""
        folded = self._folded()
        sources = {name: self._source(name, folded) for name in self._read("quant")}
        apart = {source for source in sources.values() if source not in folded}
        values = self._values() | {memory_of(source, self.views) for source in apart}
        return tuple(self._interleaved(sources, folded, values))

    def _interleaved(
        self, sources: Mapping[str, str], folded: set[str], values: set[str]
    ) -> Iterator[Step]:
        ready = set(folded)
        for step in self.steps:
            for read in reads_of(step.launch):
                source = sources[read.tensor] if read.form == "quant" else None
                if source is not None and source not in ready:
                    ready.add(source)
                    yield Step(self._quantize(source), ())
            yield replace(step, launch=_settled(step.launch, folded, values))

    def _quantize(self, source: str) -> Launch:
        rows, width = self.facts.rows(source), self.facts.width(source)
        return Quantize(Read(source), rows, width, ToBuf(source, f32=False, quant=True))

    def _read(self, form: Form) -> list[str]:
        reads = (read for step in self.steps for read in reads_of(step.launch))
        return [read.tensor for read in reads if read.form == form]

    def _values(self) -> set[str]:
        """The memory whose values somebody reads."""
        read = [*self._read("f32"), *self.facts.graph.outputs]
        return {memory_of(name, self.views) for name in read}

    def _source(self, name: str, folded: set[str]) -> str:
        """The tensor to quantize for a reader of `name`: what it is a row of, or itself.

        A scratch table whose producers cannot write codes is quantized version by version.
        """
        view = self.views.get(name)
        if view is None or not quant_in_place(view.offset):
            return name
        table = view.parent in self.facts.graph.tables
        return name if table and view.parent not in folded else view.parent

    def _folded(self) -> set[str]:
        """The memory whose producers all write its quantized form."""
        if not self.facts.knobs.fuse_quant:
            return set()
        wanted = {
            memory_of(name, self.views) for name in self._read("quant") if self._in_place(name)
        }
        values = self._values()
        able: dict[str, bool] = {}
        for step in self.steps:
            for touch in touches(step.launch):
                home = memory_of(touch.tensor, self.views)
                if touch.write and home in wanted:
                    writes = self._writes_quant(step.launch, home, f32=home in values)
                    able[home] = able.get(home, True) and writes
        return {home for home, writes in able.items() if writes}

    def _in_place(self, name: str) -> bool:
        return name not in self.views or quant_in_place(self.views[name].offset)

    def _writes_quant(self, launch: Launch, home: str, *, f32: bool) -> bool:
        dst = getattr(launch, "dst", None)
        if not isinstance(dst, ToBuf | ToScratch) or _home(dst) != home:
            return False
        changed: Any = replace(launch, dst=replace(dst, f32=f32, quant=True))  # type: ignore[arg-type]
        return self.shim.lacks(changed) is None


def _home(dst: ToBuf | ToScratch) -> str:
    return dst.tensor if isinstance(dst, ToBuf) else dst.table


def _settled(launch: Launch, folded: set[str], values: set[str]) -> Launch:
    """A launch that writes its result in the forms that are read."""
    dst = getattr(launch, "dst", None)
    if not isinstance(dst, ToBuf | ToScratch) or _home(dst) not in folded:
        return launch
    new = replace(dst, f32=_home(dst) in values, quant=True)
    return replace(launch, dst=new)  # type: ignore[arg-type]
