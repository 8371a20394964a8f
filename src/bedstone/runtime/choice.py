"""Which programs one sequence goes through."""

from bedstone.errors import CallerError
from bedstone.runtime.executor import Executor
from bedstone.runtime.rounds import draws, round_of, rows_of_rounds
from bedstone.spec.frozen import Frozen
from bedstone.spec.manifest import Manifest
from bedstone.spec.sampling import Sampling
from bedstone.verify.protocol import Protocol, Shape


def require_whole(manifest: Manifest) -> None:
    """Accept a manifest that one rank runs from tokens to tokens.

    Raises `CallerError`: it is a stage of a cut, or runs on several ranks at once.
    """
    cut, topology = manifest.cut, manifest.topology
    if cut is not None:
        raise CallerError(
            f"manifest `{manifest.model}` is stage {cut.stage} of {cut.stages} of a cut: tokens go "
            "in at the first and come out at the last, nothing runs them together"
        )
    for name, members in sorted(topology.groups.items() if topology else ()):
        if members > 1:
            raise CallerError(
                f"manifest `{manifest.model}` runs on the {members} ranks of group `{name}` at "
                "once: nothing drives more than one"
            )


class Programs(Frozen):
    """The programs that take a prompt, a row of a sequence, and a round of it.

    One may serve as two of them; a step or a round there is.
    """

    chunk: Shape
    step: Shape | None
    round: Shape | None

    @property
    def all(self) -> tuple[Shape, ...]:
        """Those there are."""
        return tuple(each for each in (self.chunk, self.step, self.round) if each is not None)

    @property
    def rows(self) -> int:
        """How many rows of a sequence the round takes; 1 without one."""
        return (self.round and self.round.rows) or 1


def programs_of_one(protocol: Protocol, rows: int | None, sampling: Sampling) -> Programs:
    """The programs that take one sequence; rounds only where they draw tokens as asked for.

    Raises `CallerError`: no program hands a token back, or there are no rounds of so many `rows`.
    """
    step = protocol.step()
    step = step if step is not None and step.emits else None
    chunk = protocol.chunk or step
    found = round_of(protocol, 1, rows_of_rounds(protocol, rows))
    if found is not None and not draws(protocol, found, sampling):
        found = None
    if chunk is None or (step is None and found is None):
        raise CallerError("no program takes one sequence and hands a token back")
    return Programs(chunk, step, found)


def rewinds(session: Executor) -> bool:
    """Whether steps too many can be written over: what each token left lies apart from the rest."""
    return all(state.bytes_per_token for state in session.manifest.states.values())
