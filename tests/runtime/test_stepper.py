import pytest

from bedstone.errors import CallerError
from bedstone.runtime.load import load
from bedstone.runtime.stepper import Stepper


def test_a_device_that_computes_nothing_is_refused(toy, cache):
    with (
        load(toy, device="null", cache=cache) as session,
        pytest.raises(CallerError, match="`null` computes nothing: expected one of `cpu`, `cuda`"),
    ):
        Stepper(session)


@pytest.mark.parametrize("addressed", [True, False])
def test_what_is_changed_is_there_wherever_memory_lies(toy, cache, monkeypatch, addressed):
    """A device's own memory is a copy while it is changed."""
    if not addressed:
        monkeypatch.setattr("bedstone.runtime.stepper._ADDRESSED", ())
    with load(toy, cache=cache) as session:
        stepper = Stepper(session)
        for region in stepper.regions:
            with stepper.edit(region) as memory:
                memory[::3] ^= 0xFF
            assert (stepper.read(region)[::3] == stepper.view(region)[::3]).all()
            looked = stepper.view(region).copy()
            with stepper.edit(region) as memory:
                memory[::3] ^= 0xFF
            assert (stepper.read(region)[::3] == looked[::3] ^ 0xFF).all()
            looked = stepper.view(region).copy()
            with stepper.edit(region, 2, 7) as memory:
                memory[:] ^= 0xFF
            looked[2:7] ^= 0xFF
            assert (stepper.read(region) == looked).all()


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
