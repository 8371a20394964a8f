"""Forms: who writes the quantized form of each tensor, and who still needs its values.

A tensor that a product reads quantized is quantized once, for every view of it. Its producers write
the codes if the lane has such launches (`fuse_quant`); else a `Quantize` precedes the first reader.
Values are written only where somebody reads them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from bedstone.lane.facts import Facts
from bedstone.lane.fit import fitted
from bedstone.lane.launch import Form, Launch, OneLaunch, Quantize, Read, ToBuf, ToScratch
from bedstone.lane.layout import View, memory_of
from bedstone.lane.schedule import Step
from bedstone.lane.shim import Shim
from bedstone.lane.touch import Leaf, places_of, reads_of, rewrite


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
        wanted = self._read("quant")
        sources = {read: self._source(read, folded) for read in wanted}
        apart = {source for source in sources.values() if source not in folded}
        values = self._values() | {memory_of(source, self.views) for source in apart}
        return tuple(self._interleaved(sources, folded, values))

    def _interleaved(
        self, sources: Mapping[Read, str], folded: set[str], values: set[str]
    ) -> Iterator[Step]:
        ready = set(folded)
        for step in self.steps:
            for read in reads_of(step.launch):
                source = sources[read] if read.form == "quant" else None
                if source is not None and source not in ready:
                    ready.add(source)
                    yield Step(self._quantize(source), ())
            yield replace(step, launch=_settled(step.launch, folded, values))

    def _quantize(self, source: str) -> OneLaunch:
        rows, width = self.facts.count(source), self.facts.width(source)
        launch = Quantize(Read(source), rows, width, ToBuf(source, f32=False, quant=True))
        return fitted(launch, self.views, self.shim, self.facts.coding)

    def _read(self, form: Form) -> list[Read]:
        reads = (read for step in self.steps for read in reads_of(step.launch))
        return [read for read in reads if read.form == form]

    def _values(self) -> set[str]:
        """The memory whose values somebody reads."""
        read = [*(read.tensor for read in self._read("f32")), *self.facts.graph.outputs]
        return {memory_of(name, self.views) for name in read}

    def _source(self, read: Read, folded: set[str]) -> str:
        """The tensor to quantize for a reader: what it reads some rows or a part of, or itself.

        A scratch table whose producers cannot write codes is quantized version by version.
        """
        if not self._in_place(read):
            return read.tensor
        home = memory_of(read.tensor, self.views)
        table = home in self.facts.graph.tables
        return read.tensor if table and home not in folded else home

    def _folded(self) -> set[str]:
        """The memory whose producers all write its quantized form."""
        if not self.facts.knobs.fuse_quant:
            return set()
        reads = [read for read in self._read("quant") if self._in_place(read)]
        wanted = {memory_of(read.tensor, self.views) for read in reads}
        writers = self._writers()
        values = self._values()
        while True:
            lacking = {
                home
                for home in wanted
                if home not in writers or not self._able(writers[home], wanted, values)
            }
            if not lacking:
                return wanted
            wanted -= lacking

    def _writers(self) -> Mapping[str, list[Launch]]:
        """The launches that write each buffer."""
        found: dict[str, list[Launch]] = {}
        for step in self.steps:
            for place in places_of(step.launch):
                found.setdefault(_home(place), []).append(step.launch)
        return found

    def _able(self, writers: list[Launch], wanted: set[str], values: set[str]) -> bool:
        """Whether launches can write all wanted forms of what they make."""
        return all(self.shim.lacks(_settled(w, wanted, values)) is None for w in writers)

    def _in_place(self, read: Read) -> bool:
        """Whether a reader reads the quantized form of the memory its tensor lies in."""
        view = self.views.get(read.tensor)
        if view is None:
            return True
        whole = view.layout.whole_blocks(self.facts.coding)
        return whole and read.window == view.layout.window


def _home(dst: ToBuf | ToScratch) -> str:
    return dst.tensor if isinstance(dst, ToBuf) else dst.table


def _settled(launch: Launch, folded: set[str], values: set[str]) -> Launch:
    """A launch that writes its results in the forms that are read."""

    def settled(leaf: Leaf) -> Leaf:
        if not isinstance(leaf, ToBuf | ToScratch) or _home(leaf) not in folded:
            return leaf
        return replace(leaf, f32=_home(leaf) in values, quant=True)

    return rewrite(launch, settled)
