"""How much memory a manifest takes, by what it is for."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bedstone.cli.table import columns, counted, size
from bedstone.errors import CallerError
from bedstone.spec.fault import shown
from bedstone.spec.manifest import Manifest, Op, State
from bedstone.verify.sizes import array_bytes


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes at `env`, a value for each var.

    `buffers` is the count and the bytes of each kind, `scratch` the most one op takes; `states`
    the names of the states of each size, the size being what it is for and its bytes.
    """

    env: Mapping[str, int]
    buffers: Mapping[str, tuple[int, int]]
    scratch: int
    states: Mapping[tuple[str, int], tuple[str, ...]]

    @property
    def where(self) -> str:
        """The vars in words."""
        return ", ".join(f"{name}={value}" for name, value in sorted(self.env.items())) or "no vars"

    def lines(self) -> list[str]:
        """The memory as lines of text."""
        buffers = [(kind, counted(n, "buffer"), size(b)) for kind, (n, b) in self.buffers.items()]
        scratch = [("scratch", "largest op", size(self.scratch))] if self.scratch else []
        states = [
            (f"state {_span(names)}", counted(len(names), "state"), f"{size(count)} {per} each")
            for (per, count), names in self.states.items()
        ]
        return columns([*buffers, *scratch, *states])

    def json(self) -> dict[str, Any]:
        """The JSON object of a report."""
        return {
            "vars": dict(sorted(self.env.items())),
            "buffers": {k: {"count": n, "bytes": b} for k, (n, b) in self.buffers.items()},
            "scratch": self.scratch,
            "states": [
                {"names": list(names), "bytes": count, "per": per}
                for (per, count), names in self.states.items()
            ],
        }


def parse_vars(manifest: Manifest, text: str) -> dict[str, int]:
    """Read values of a manifest's vars.

    Args:
        manifest: Declares the vars.
        text: The values given, such as `tokens=512,seqs=1`.

    Returns:
        The value of each var; one that is not given is at its max.

    Raises:
        CallerError: it names an unknown var, or a value outside what the var declares.
    """
    env = {name: var.max for name, var in manifest.vars.items()}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in env:
            known = ", ".join(f"`{known}`" for known in sorted(env)) or "none"
            raise CallerError(f"`--vars` names `{name}`, expected a var of the manifest: {known}")
        limit = manifest.vars[name].max
        number = _number(value)
        if number is None or not 1 <= number <= limit:
            raise CallerError(f"`--vars` sets `{name}` to `{shown(value)}`, expected 1 to {limit}")
        env[name] = number
    return env


def _number(text: str) -> int | None:
    """The number that plain digits spell, unless it is longer than any var's."""
    plain = text.isascii() and text.isdigit() and len(text) <= 20
    return int(text) if plain else None


def memory_at(manifest: Manifest, env: Mapping[str, int]) -> Memory:
    """The memory of a verified manifest at `env`."""
    counts, totals = Counter[str](), Counter[str]()
    for buffer in manifest.buffers.values():
        kind = f"{buffer.kind} (host)" if buffer.placement == "host" else buffer.kind
        counts[kind] += 1
        totals[kind] += array_bytes(buffer.dtype, buffer.shape, env) or 0
    states: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for name, state in sorted(manifest.states.items()):
        states[_size(state)].append(name)
    return Memory(
        env,
        {kind: (counts[kind], count) for kind, count in totals.most_common()},
        max((_scratch(op, env) for op in manifest.ops.values()), default=0),
        {sort: tuple(names) for sort, names in states.items()},
    )


def _scratch(op: Op, env: Mapping[str, int]) -> int:
    return sum(array_bytes(s.dtype, s.shape, env) or 0 for s in op.impl.scratch.values())


def _size(state: State) -> tuple[str, int]:
    if state.host is not None:
        return "of the host's", 0
    sizes = {
        "a token": state.bytes_per_token,
        "a sequence": state.bytes_per_seq,
        "in all": state.bytes,
    }
    return next((per, count) for per, count in sizes.items() if count)


def _span(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
