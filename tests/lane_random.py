"""Random small steps: any ops a graph may hold, sharing tensors at random."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from bedstone.graph.builder import Builder
from bedstone.graph.step import (
    Act,
    Add,
    ArgMax,
    AtParam,
    Attention,
    Concat,
    Conv,
    Decay,
    Delta,
    Embed,
    Fixed,
    HLinear,
    L2Norm,
    Linear,
    Mul,
    Norm,
    Out,
    Part,
    Ref,
    Renorm,
    Rope,
    RopeTable,
    Row,
    Scale,
    Score,
    Set,
    Softcap,
    StepGraph,
    Table,
    TopK,
    XLinear,
    XSum,
)

T = TypeVar("T")

WIDE, NARROW, CAPACITY = 64, 32, 16
FREQS = tuple(10.0 ** (-i / 8) for i in range(8))


class Choices:
    """Numbers that decide, one after another; zeros when they run out."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = iter(numbers)

    def below(self, count: int) -> int:
        return next(self._numbers, 0) % count

    def pick(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]


class RandomStep:
    """A step being written: `pool` holds the tensors of each width so far."""

    def __init__(self, choices: Choices, rows: int, matrix: str) -> None:
        form = "decode" if rows == 1 else "chunk"
        self.build = Builder("random", form, rows)
        self.choose = choices
        self.matrix = matrix
        self.rows = rows
        self.count = 0
        self.versions: dict[str, Ref] = {}
        self.build.param("pos")
        self.build.rope(RopeTable("rope", FREQS))
        embedding = self.const("E", 48, WIDE)
        ids = self.build.carried("token" if rows == 1 else "prompt")
        self.pool = {WIDE: [self.build.add(Embed(ids, embedding, Out("x")))], NARROW: [], 4: []}
        self.pool[NARROW].append(self.product(NARROW))
        self.pool[4].append(self.product(4, dense=True))

    def name(self) -> Out:
        self.count += 1
        return Out(f"t{self.count}")

    def const(self, name: str, *shape: int, dense: bool = False) -> Ref:
        return self.build.const(name, "f32" if dense or len(shape) == 1 else self.matrix, shape)

    def any(self, width: int = WIDE) -> Ref:
        return self.choose.pick(self.pool[width])

    def product(self, width: int, *, dense: bool = False, k: int = WIDE) -> Ref:
        which = self.choose.below(3)
        w = self.const(f"W{k}.{width}.{which}", width, k, dense=dense)
        return self.build.add(Linear(self.any(k), w, self.name()))

    def table(self, name: str, width: int, *, scratch: bool = False, zeros: bool = False) -> Ref:
        if name not in self.versions:
            capacity = {(True, False): self.rows, (False, True): 2}.get((scratch, zeros), CAPACITY)
            capacity = width if zeros and name == "state" else capacity
            self.versions[name] = self.build.table(Table(name, capacity, width, scratch, zeros))
        return self.versions[name]

    def set(self, name: str, x: Ref, table: Ref, at: AtParam | Fixed) -> None:
        self.versions[name] = self.build.add(Set(table, x, self.name(), at))

    # --- what may come next -------------------------------------------------------------------

    def linear(self) -> None:
        y = self.product(WIDE)
        if self.choose.below(2):
            y = self.build.add(Add(y, self.const("b", WIDE), self.name()))
        match self.choose.below(4):
            case 0:
                y = self.build.add(Add(self.any(), y, self.name()))
            case 1:
                y = self.build.add(Softcap(y, self.name(), 3.0))
        self.pool[WIDE].append(y)

    def narrow(self) -> None:
        self.pool[NARROW].append(self.product(NARROW))

    def widen(self) -> None:
        self.pool[WIDE].append(self.product(WIDE, k=NARROW))

    def norm(self) -> None:
        unit = self.choose.pick((WIDE, 16))
        w = self.const(f"w{unit}", unit)
        plus_one = bool(self.choose.below(2))
        self.pool[WIDE].append(
            self.build.add(Norm(self.any(), w, self.name(), 1e-5, unit, plus_one))
        )

    def l2norm(self) -> None:
        self.pool[WIDE].append(self.build.add(L2Norm(self.any(), self.name(), 1e-5, 16)))

    def add(self) -> None:
        self.pool[WIDE].append(self.build.add(Add(self.any(), self.any(), self.name())))

    def residual(self) -> None:
        """A sum of something made, itself normed or not, and the norm of the sum."""
        w, made = self.const("w64", WIDE), self.product(WIDE)
        if self.choose.below(2):
            made = self.build.add(Norm(made, w, self.name(), 1e-6, WIDE))
        total = self.build.add(Add(self.any(), made, self.name()))
        self.pool[WIDE].append(total)
        self.pool[WIDE].append(self.build.add(Norm(total, w, self.name(), 1e-5, WIDE)))

    def turned(self) -> Ref:
        """Heads of a product, normed or not, rotated."""
        x = self.product(WIDE)
        if self.choose.below(2):
            x = self.build.add(Norm(x, self.const("w16", 16), self.name(), 1e-5, 16))
        return self.build.add(Rope(x, self.name(), "rope", "pos", 4, 16, 16, "neox"))

    def mul(self) -> None:
        self.pool[WIDE].append(self.build.add(Mul(self.any(), self.any(), self.name())))

    def act(self) -> None:
        fn = self.choose.pick(("silu", "gelu_tanh", "sigmoid", "softplus"))
        width = self.choose.pick((WIDE, NARROW, 4))
        self.pool[width].append(self.build.add(Act(self.any(width), self.name(), fn)))

    def glu(self) -> None:
        x, fn = self.any(), self.choose.pick(("silu", "gelu_tanh", "sigmoid"))
        gate, up = (
            self.build.add(Linear(x, self.const(f"G{i}", WIDE, WIDE), self.name())) for i in "gu"
        )
        act = self.build.add(Act(gate, self.name(), fn))
        self.pool[WIDE].append(self.build.add(Mul(act, up, self.name())))

    def scale(self) -> None:
        self.pool[WIDE].append(self.build.add(Scale(self.any(), self.name(), 0.5)))

    def softcap(self) -> None:
        self.pool[WIDE].append(self.build.add(Softcap(self.any(), self.name(), 5.0)))

    def rope(self) -> None:
        kind = self.choose.pick(("neox", "pair"))
        x, sizes = self.any(), self.choose.pick(((4, 16, 16, 0), (2, 32, 16, 8)))
        heads, head_dim, rot, offset = sizes
        op = Rope(x, self.name(), "rope", "pos", heads, head_dim, rot, kind, offset)
        self.pool[WIDE].append(self.build.add(op))

    def part(self) -> None:
        units = self.choose.pick((1, 2, 4))
        both = self.build.add(Concat(self.any(), self.any(), self.name(), units))
        pitch, width = 2 * WIDE // units, WIDE // units
        offset = self.choose.pick((0, width, width // 2))
        self.pool[WIDE].append(self.build.add(Part(both, self.name(), pitch, offset, width, units)))

    def heads(self) -> None:
        transposed = bool(self.choose.below(2))
        w = self.const("H", 2, NARROW, NARROW)
        self.pool[WIDE].append(self.build.add(HLinear(self.any(), w, self.name(), 2, transposed)))

    def attention(self) -> None:
        turns = bool(self.choose.below(2))
        q, k = (self.turned() if turns else self.any() for _ in range(2))
        self.set("K", k, self.table("K", WIDE), AtParam("pos"))
        inside = self.choose.below(3) == 0
        if not inside:
            v = self.product(WIDE) if turns else self.any()
            self.set("V", v, self.table("V", WIDE), AtParam("pos"))
        values = self.versions["K" if inside else "V"]
        groups, window = self.choose.pick((4, 2)), self.choose.pick((None, 3))
        dk = WIDE // groups
        heads = WIDE // dk
        op = Attention(
            q, self.versions["K"], values, self.name(), "pos", heads, groups, dk, dk, 0.25, window
        )
        y = self.build.add(op)
        if self.choose.below(2):
            gate = self.build.add(Act(self.any(), self.name(), "sigmoid"))
            y = self.build.add(Mul(y, gate, self.name()))
        self.pool[WIDE].append(y)

    def scratch(self) -> None:
        """Every row of a scratch table written, from rows of anything, and the table read."""
        table = self.table("S", WIDE, scratch=True)
        for row in range(self.rows):
            x = self.build.add(Row(self.any(), self.name(), Fixed(self.choose.below(self.rows))))
            self.set("S", x, table, Fixed(row))
            table = self.versions["S"]
        self.pool[WIDE].append(self.build.add(Scale(table, self.name(), 1.0)))

    def experts(self) -> None:
        x = self.any()
        scores = self.build.add(
            Score(self.any(4), self.name(), self.choose.pick(("softmax", "sigmoid")))
        )
        ids = self.build.add(TopK(scores, self.name(), 2))
        weights = self.build.add(Renorm(scores, ids, self.name(), bool(self.choose.below(2))))
        gate, up = (
            self.build.add(XLinear(x, ids, self.const(f"X{i}", 4, NARROW, WIDE), self.name(), 4))
            for i in "gu"
        )
        act = self.build.add(Act(gate, self.name(), "silu"))
        inner = self.build.add(Mul(act, up, self.name()))
        down = self.const("XD", 4, WIDE, NARROW)
        made = self.build.add(XLinear(inner, ids, down, self.name(), 4))
        self.pool[WIDE].append(self.build.add(XSum(made, weights, self.name())))

    def conv(self) -> None:
        taps = self.const("T", WIDE, 3, dense=True)
        ring, version = self.table("ring", WIDE, zeros=True), self.name()
        y = self.build.add(Conv(self.any(), taps, ring, self.name(), version))
        self.versions["ring"] = Ref(version)
        if self.choose.below(2):
            y = self.build.add(Act(y, self.name(), "silu"))
        self.pool[WIDE].append(y)

    def delta(self) -> None:
        state, version = self.table("state", NARROW, zeros=True), self.name()
        vectors = (self.const("al", 2), self.const("dt", 2))
        a, b = (self.build.add(Part(self.any(4), self.name(), 4, 2 * i, 2, 1)) for i in range(2))
        op = Delta(
            q=self.any(NARROW),
            k=self.any(NARROW),
            v=self.any(),
            g=self.build.add(Decay(a, *vectors, self.name())),
            beta=self.build.add(Act(b, self.name(), "sigmoid")),
            state=state,
            out=self.name(),
            version=version,
            key_heads=2,
            heads=2,
            dk=16,
            dv=32,
            scale=0.25,
        )
        self.pool[WIDE].append(self.build.add(op))
        self.versions["state"] = Ref(version)

    def finish(self) -> StepGraph:
        """The last row's logits, and some tensor besides as an output."""
        last = self.pool[WIDE][-1]
        if self.rows > 1:
            last = self.build.add(Row(last, self.name(), Fixed(self.rows - 1)))
        head = self.build.const("head", "f32", (48, WIDE))
        logits = self.build.add(Linear(last, head, Out("logits")))
        also = self.choose.pick(self.pool[WIDE])
        return self.build.build(logits, also, self.build.add(ArgMax(logits, Out("next"))))


STEPS: tuple[Callable[[RandomStep], None], ...] = (
    RandomStep.linear,
    RandomStep.narrow,
    RandomStep.widen,
    RandomStep.norm,
    RandomStep.l2norm,
    RandomStep.add,
    RandomStep.residual,
    RandomStep.mul,
    RandomStep.act,
    RandomStep.glu,
    RandomStep.scale,
    RandomStep.softcap,
    RandomStep.rope,
    RandomStep.part,
    RandomStep.heads,
    RandomStep.attention,
    RandomStep.scratch,
    RandomStep.experts,
    RandomStep.conv,
    RandomStep.delta,
)


def random_step(numbers: Sequence[int]) -> StepGraph:
    """A step of as many ops as there are numbers to decide them."""
    choices = Choices(numbers)
    rows = choices.pick((1, 3))
    step = RandomStep(choices, rows, choices.pick(("q8_0", "f32")))
    for _ in range(max(1, len(numbers) // 6)):
        choices.pick(STEPS)(step)
    return step.finish()
