"""Where compiled code is kept between runs, unless a caller names another place."""

from pathlib import Path

from bedstone.errors import CallerError


def user_cache() -> Path:
    """`bedstone` in the user's `.cache`.

    Raises `CallerError`: the user has no home.
    """
    try:
        return Path.home() / ".cache" / "bedstone"
    except RuntimeError as error:
        raise CallerError(
            "there is no home directory to keep compiled code in: name a cache directory "
            "(`BEDSTONE_CACHE`, or `cache=` from Python)"
        ) from error
