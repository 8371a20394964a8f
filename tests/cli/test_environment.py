from pathlib import Path

import pytest

from bedstone.cli.environment import cache_directory

HOME = Path.home() / ".cache" / "bedstone"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, HOME),
        ({"BEDSTONE_CACHE": "/c", "XDG_CACHE_HOME": "/x"}, Path("/c")),
        ({"BEDSTONE_CACHE": "", "XDG_CACHE_HOME": "/x"}, Path("/x/bedstone")),
        ({"XDG_CACHE_HOME": ""}, HOME),
        ({"XDG_CACHE_HOME": "relative"}, HOME),
    ],
)
def test_the_cache_is_where_the_environment_says(environ, expected):
    assert cache_directory(environ) == expected
