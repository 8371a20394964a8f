import pwd
from pathlib import Path

import pytest

from bedstone.cli.environment import cache_directory
from bedstone.errors import CallerError

HOME = Path.home() / ".cache" / "bedstone"


def test_a_user_without_a_home_is_told_to_name_a_cache(monkeypatch):
    def nobody(_):
        raise KeyError

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    with pytest.raises(CallerError, match=r"no home directory.*`BEDSTONE_CACHE`"):
        cache_directory({})
    assert cache_directory({"BEDSTONE_CACHE": "/c"}) == Path("/c")


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
