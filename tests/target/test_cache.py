"""The place where compiled code is kept."""

import pytest

from bedstone.errors import CallerError
from bedstone.target.cache import require_cache


def test_a_cache_that_cannot_be_kept_in_is_told_before_a_compile(tmp_path):
    (tmp_path / "file").touch()
    require_cache(tmp_path / "fresh" / "packages")
    with pytest.raises(CallerError, match="packages` cannot be written: Not a directory; name"):
        require_cache(tmp_path / "file" / "packages")
