"""Fronts over scripted engines, called in this process."""

import pytest

from fronts import Fronted


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
