"""Steps planned of known shapes, for tests of what is said about them."""

from functools import cache

from bedstone.build.request import Options
from bedstone.build.step import PlannedStep, plan_step
from bedstone.build.survey import Choices, Machine, Survey, survey
from bedstone.checkpoint.shapes import shape_checkpoint
from bedstone.lane.plan import RULES
from bedstone.target.bandwidth import Bandwidth

MACHINE = Machine(Bandwidth(4.3e12, measured=False))


@cache
def planned(
    name: str,
    form: str = "decode",
    matrices: str = "bf16",
    *,
    numerics: str = "quantized",
    unfused: bool = False,
    sequences: int = 3,
) -> PlannedStep:
    """One form of a known model's step."""
    options = Options(numerics, 4096, RULES if unfused else (), sequences)
    shape = shape_checkpoint(name, matrices)
    return plan_step(shape, form, options, fuse_quant=not unfused)


def surveyed(name: str, *forms: str, **options: object) -> Survey:
    """The survey of a known model."""
    choices = Choices(Options(context=4096, sequences=3), forms or ("decode",), **options)
    return survey(shape_checkpoint(name, "q4_0"), choices, MACHINE)
