"""What `import bedstone` gives, and what it costs."""

import json
import os
import subprocess
import sys

import pytest

import bedstone

HEAVY = ("numpy", "torch", "transformers", "tokenizers", "typer", "msgspec", "gguf")
IMPORT_SECONDS = 0.150

PROBE = """
import json, sys, time
start = time.perf_counter()
import bedstone
print(json.dumps([time.perf_counter() - start, sorted(sys.modules)]))
"""


def test_all_names_resolve_and_are_all_there_is():
    assert sorted(bedstone.__all__) == bedstone.__all__
    assert set(bedstone._MODULES) == set(bedstone.__all__)
    for name in bedstone.__all__:
        assert getattr(bedstone, name).__module__ == bedstone._MODULES[name]
    assert set(bedstone.__all__) <= set(dir(bedstone))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute `nothing`"):
        _ = bedstone.nothing


def test_import_is_quick_and_loads_nothing_heavy():
    runs = [_probe() for _ in range(3)]
    assert min(seconds for seconds, _ in runs) < IMPORT_SECONDS
    assert not set(HEAVY) & set(runs[0][1])


def test_a_manifest_is_checked_in_any_form(tmp_path):
    document = {
        "schema_version": 6,
        "model": "m",
        "buffers": {},
        "modules": {},
        "ops": {},
        "programs": {},
    }
    text = json.dumps(document)
    path = tmp_path / "m.json"
    path.write_text(text)
    found = [bedstone.check(form) for form in (text, text.encode(), document, path)]
    assert [[fault.rule for fault in faults] for faults in found] == [["F1", "Y1"]] * 4
    assert all(isinstance(fault, bedstone.Fault) for fault in found[0])


def test_a_manifest_that_does_not_parse_has_one_fault(tmp_path):
    assert [fault.rule for fault in bedstone.check("{")] == ["P1"]
    assert [fault.rule for fault in bedstone.check({})] == ["P5"]
    with pytest.raises(bedstone.ManifestError, match="cannot be read"):
        bedstone.check(tmp_path / "nowhere.json")


def _probe():
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, check=True, env=environment
    )
    return json.loads(done.stdout)
