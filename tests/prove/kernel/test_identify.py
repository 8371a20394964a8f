"""An op's kernel found again from its launches: one that does several launches of a step too."""

import pytest

from bedstone.build.kernels import catalogs
from bedstone.library.kernel import MAPS
from bedstone.prove.kernel.identify import identify
from bedstone.prove.kernel.pose import definition_at
from bedstone.spec.manifest import BytesParam, ScalarParam
from bedstone.target.hardware import read_sets
from build.test_joined import NORMED, PLAIN, emitted, lane

FREE = ("slots", "capacity", "stored", "vocab")

SETS = catalogs(read_sets()["hopper"])


@pytest.mark.parametrize("config", [PLAIN, NORMED], ids=["plain", "normed"])
def test_every_op_of_a_package_is_known(config) -> None:
    manifest = emitted(config, lane())
    for name in manifest.ops:
        known = identify(manifest, name, SETS)
        told = known.numbers.keys() | known.memory.keys() | known.tables.keys()
        assert told == {param.name for param in known.kernel.params} - {MAPS}, name
        env = {var: manifest.vars[var].max for var in known.vars}
        of = definition_at(known, known.at(env), dict.fromkeys(FREE, 99))
        memory = {
            p.name for p in known.kernel.params
            if not isinstance(p.type, ScalarParam | BytesParam) and p.name != MAPS
        }  # fmt: skip
        assert memory <= of.inputs.keys() | of.outputs.keys()


def test_rotations_and_their_attention_are_one_kernels() -> None:
    manifest = emitted(NORMED, lane())
    found = {identify(manifest, name, SETS).entry for name in manifest.ops}
    assert {"attention_turned_n_d64_x8", "rope_parts_n_rows"} <= found
