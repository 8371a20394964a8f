import pytest

from bedstone.errors import CallerError
from bedstone.prove.config import Config
from bedstone.spec.workload import Tolerance


@pytest.mark.parametrize("name", ["trials", "iterations", "samples"])
def test_there_is_one_of_each_at_least(name):
    with pytest.raises(CallerError, match=f"`{name}` is 0: expected 1 at least"):
        Config(**{name: 0})


def test_no_call_need_be_warm():
    assert Config(warmup=0).warmup == 0
    with pytest.raises(CallerError, match="`warmup` is -1"):
        Config(warmup=-1)


def test_a_bound_below_zero_is_refused_and_zero_asks_for_equality():
    assert Config(tolerance=Tolerance(0.0, 0.0)).tolerance.rtol == 0
    with pytest.raises(CallerError, match=r"a tolerance of -0\.1"):
        Config(tolerance=Tolerance(0.0, -0.1))
