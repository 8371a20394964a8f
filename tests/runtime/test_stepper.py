import pytest

from bedstone.errors import CallerError
from bedstone.runtime.load import load
from bedstone.runtime.stepper import Stepper


def test_a_device_that_runs_whole_programs_is_refused(toy, cache):
    with (
        load(toy, device="null", cache=cache) as session,
        pytest.raises(CallerError, match="`null` runs whole programs"),
    ):
        Stepper(session)


def test_what_lies_between_regions_is_theirs_to_leave_alone(toy, cache):
    with load(toy, cache=cache) as session:
        stepper = Stepper(session)
        between = stepper.between()
        assert between == bytes(len(between))
        for region, memory in stepper.regions.items():
            stepper.write(region, stepper.read(region) | 1)
            assert stepper.read(region).all()
            assert memory.nbytes == stepper.read(region).size
        assert stepper.between() == between
