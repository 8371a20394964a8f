"""What the environment says; nothing below the command line reads it."""

import os
from collections.abc import Mapping
from pathlib import Path

from bedstone.target.cache import user_cache


def cache_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Where compiled kernels and downloads are kept.

    `BEDSTONE_CACHE` as it is, else `bedstone` in `XDG_CACHE_HOME`, else in `~/.cache`. An empty
    value counts as unset, and so does a relative XDG_CACHE_HOME, as its specification asks.
    """
    if chosen := environ.get("BEDSTONE_CACHE"):
        return Path(chosen)
    base = Path(environ.get("XDG_CACHE_HOME") or ".")
    return base / "bedstone" if base.is_absolute() else user_cache()


def api_key(environ: Mapping[str, str] = os.environ) -> str:
    """The key that opens a server: `BEDSTONE_API_KEY`, empty where there is none."""
    return environ.get("BEDSTONE_API_KEY", "").strip()
