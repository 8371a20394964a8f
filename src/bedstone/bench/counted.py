"""What a case costs by its plan: bytes moved and operations made."""

from dataclasses import dataclass

from bedstone.bench.cases import Case
from bedstone.build.costs import Cost, LaunchCost
from bedstone.build.counting import launch_costs
from bedstone.build.lane import Lane
from bedstone.build.step import PlannedStep, form_graph
from bedstone.checkpoint.shapes import Shape
from bedstone.graph.step import FormName


@dataclass(frozen=True, slots=True)
class Planned:
    """A model as a package was compiled of it: the lane, and the positions that are served."""

    shape: Shape
    lane: Lane
    context: int

    def cost(self, case: Case) -> Cost:
        """The cost of a step, or of all steps of a prompt."""
        if case.kind == "prefill":
            return Cost.of(self._prompt(case.context))
        form: FormName = "decode" if case.batch == 1 else "batch"
        return Cost.of(self._step(form, case.batch, case.context))

    def _prompt(self, length: int) -> list[LaunchCost]:
        """Whole chunks, then what is left."""
        most = min(self.lane.knobs.max_chunk, self.context)
        whole, left = divmod(length, most)
        steps = self._planned("chunk", most) if whole else None
        found = [
            cost
            for chunk in range(whole)
            if steps is not None
            for cost in launch_costs(steps, (chunk + 1) * most)
        ]
        return found + self._step("chunk", left, length) if left else found

    def _step(self, form: FormName, rows: int, at: int) -> list[LaunchCost]:
        return list(launch_costs(self._planned(form, rows), at))

    def _planned(self, form: FormName, rows: int) -> PlannedStep:
        graph = form_graph(self.shape, form, self.context, rows)
        return PlannedStep(graph, self.lane.lower(graph), self.lane, self.context)
