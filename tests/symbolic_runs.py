"""Manifests run on symbols: each value a call writes is a name for the op and all it read.

Two runs that end with equal symbols did the same computation. Memory that nothing defined has a
symbol of its own, so a value lost on the way shows in whatever depends on it.
"""

from dataclasses import dataclass, field

from bedstone.spec.manifest import BufArg, Manifest, StateArg
from bedstone.verify.binding import call_bindings, reads, writes

Symbol = int
Key = tuple[str, str, int]


@dataclass(slots=True)
class Symbols:
    """One number for each distinct expression."""

    known: dict[object, Symbol] = field(default_factory=dict)

    def of(self, *expression: object) -> Symbol:
        return self.known.setdefault(expression, len(self.known))


@dataclass(slots=True)
class Machine:
    """A loaded manifest: what its buffers and state regions hold.

    `dead` are the buffers that mean nothing between runs, whatever a stage declares them as.
    """

    manifest: Manifest
    symbols: Symbols
    dead: frozenset[str]
    memory: dict[Key, Symbol] = field(default_factory=dict)

    def load(self):
        """Run the derive programs, then the once programs, each by name."""
        programs = sorted(self.manifest.programs.items())
        for name in [n for n, p in programs if p.derive] + [n for n, p in programs if p.once]:
            self._calls(name)

    def run(self, program, step, arriving=()):
        """Stage the inputs of this step, take what arrives, and run a program."""
        for name, buffer in self.manifest.buffers.items():
            if name in self.dead:
                self.memory[("buffer", name, 0)] = self.symbols.of("undefined", name)
            elif buffer.kind == "input":
                self.memory[("buffer", name, 0)] = self.symbols.of("input", name, step)
        self.memory.update(arriving)
        self._calls(program)

    def read(self, kinds):
        """The buffers of these kinds, by name."""
        return {
            name: self.value(("buffer", name, 0))
            for name, buffer in self.manifest.buffers.items()
            if buffer.kind in kinds
        }

    def states(self):
        """Every state region that was written."""
        return {key: value for key, value in self.memory.items() if key[0] == "state"}

    def _calls(self, program):
        for call in self.manifest.programs[program].calls:
            self._call(call)

    def _call(self, call):
        bindings = call_bindings(self.manifest.ops[call.op], call)
        values = []
        for position, (param, arg) in enumerate(bindings):
            key = _key(arg)
            if key is None:
                values.append(str(arg))
            elif reads(param):
                # A read elsewhere in the buffer is another value of the same bytes.
                values.append((self.value(key), getattr(arg, "offset", 0)))
            if key is not None and writes(param):
                whole = not reads(param) and getattr(arg, "offset", 0) == 0 and key[0] == "buffer"
                old = () if whole else (self.value(key), arg.offset)
                self.memory[key] = self.symbols.of(call.op, position, tuple(values), old)

    def value(self, key):
        if key not in self.memory:
            self.memory[key] = self.symbols.of("initial", key)
        return self.memory[key]


def _key(arg):
    match arg:
        case BufArg(buf=name):
            return ("buffer", name, 0)
        case StateArg(state=name, offset=offset):
            return ("state", name, offset)
        case _:
            return None


def run_whole(manifest, steps, symbols):
    """What a manifest leaves after the programs `steps`: outputs of each, carries, states."""
    machine = Machine(manifest, symbols, workspaces(manifest))
    machine.load()
    outputs = []
    for step, program in enumerate(steps):
        machine.run(program, step)
        outputs.append(machine.read({"output", "inout"}))
    return outputs, machine.read({"carry"}), machine.states()


def run_stages(manifest, stages, steps, symbols):
    """The same for the stages of `manifest`, each handing what arrives to the next."""
    machines = [Machine(stage, symbols, workspaces(manifest)) for stage in stages]
    for machine in machines:
        machine.load()
    outputs = []
    for step, program in enumerate(steps):
        before = None
        for machine in machines:
            machine.run(program, step, _arriving(before, machine.manifest))
            before = machine
        outputs.append(machines[-1].read({"output", "inout"}))
    carries, states = {}, {}
    for machine in machines:
        carries |= machine.read({"carry"})
        states |= machine.states()
    return outputs, carries, states


def workspaces(manifest):
    """The buffers that are dead between runs."""
    return frozenset(n for n, b in manifest.buffers.items() if b.kind == "workspace")


def _arriving(before, manifest):
    if before is None:
        return {}
    doors = [n for n, b in manifest.buffers.items() if b.export and b.kind in {"input", "inout"}]
    return {("buffer", n, 0): before.value(("buffer", n, 0)) for n in doors}
