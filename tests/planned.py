"""Steps planned of known shapes, for tests of what is said about them."""

from functools import cache

from bedstone.build.lane import target_lane
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
    lane = target_lane("auto", numerics)
    return plan_step(shape, form, options, lane.unfused if unfused else lane)


def surveyed(name: str, *forms: str, **options: object) -> Survey:
    """The survey of a known model."""
    made = Options(context=4096, sequences=3)
    choices = Choices(made, forms or ("decode",), target_lane("auto", made.numerics), **options)
    return survey(shape_checkpoint(name, "q4_0"), choices, MACHINE)
