"""Fronts over scripted engines, called in this process."""

import pytest

from fronts import Fronted, Served


@pytest.fixture
def fronted():
    """Makes fronts and closes their engines."""
    made = []

    def make(*args, **options):
        made.append(Fronted(*args, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def served(fronted):
    """Serves fronts at ports of this machine."""
    made = []

    def make(*args, grace=5.0, **options):
        made.append(Served(fronted(*args, **options), grace))
        return made[-1]

    yield make
    for each in made:
        each.close()
