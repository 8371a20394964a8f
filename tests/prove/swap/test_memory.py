"""What a proof holds: less than twice what a side is loaded with, beside its two processes."""

import os

from bedstone.runtime.load import read_parts
from held_memory import held_by, python_bytes, side_bytes
from swaps import rebuilt

NORMED = "return vf_load_n(x + i, n) * factor * (offset + vf_load_n(w + i, n));"
OTHERWISE = "return vf_load_n(x + i, n) * (factor * (offset + vf_load_n(w + i, n)));"
OBJECTS = 16 << 20
"""What a process holds in objects of Python: a manifest, what is known of its calls, results."""


def test_memory_is_under_twice_a_side(package, cache, tmp_path):
    other = rebuilt(package, tmp_path / "b", "norm", ("norm.h", NORMED, OTHERWISE))
    side = side_bytes(read_parts(package).manifest)
    python = python_bytes("bedstone.cli.prove.swap, bedstone.prove.swap.swap")
    environment = {**os.environ, "BEDSTONE_CACHE": str(cache)}
    found = held_by(["prove", "swap", str(package), str(other), "--no-perf"], environment)
    assert found.code == 0, found.stdout
    assert python < found.most < 2 * side + 2 * (python + OBJECTS)
