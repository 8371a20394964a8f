"""The verdict: what `check` and `verify` return, that only `verify` makes proof, and how fast."""

import json
import time
import tracemalloc
from itertools import groupby

import pytest

from bedstone.spec.codec import parse
from bedstone.verify import RefusedError, Verified, check, verify
from conformance_cases import cases
from fuzz.comparison import judged
from large_manifest import large_manifest
from verify.tiny_manifest import ABSENT, broken


def test_a_sound_manifest_is_verified() -> None:
    manifest = parse(broken())
    assert verify(manifest).manifest is manifest


def test_a_refusal_lists_every_fault() -> None:
    manifest = parse(broken(("/schema_version", 6), ("/cut/stage", 9), ("/modules/k/source", "")))
    with pytest.raises(RefusedError) as refusal:
        verify(manifest)
    assert refusal.value.faults == tuple(check(manifest))
    lines = str(refusal.value).splitlines()
    assert lines[0] == "manifest `tiny` has 3 faults:"
    assert lines[1:] == [f"  - {fault}" for fault in check(manifest)]


def test_nobody_else_makes_a_verified_manifest() -> None:
    with pytest.raises(TypeError, match="is made by"):
        Verified(parse(broken()), object())


def test_faults_come_in_the_order_of_the_manifests_names() -> None:
    text = broken(("/buffers/x/shape", []), ("/buffers/w/shape", []), ("/buffers/raw/shape", []))
    backwards = json.loads(text)
    backwards["buffers"] = dict(reversed(backwards["buffers"].items()))
    faults = check(parse(text))
    assert [fault.path for fault in faults] == [f"/buffers/{n}/shape" for n in ("raw", "w", "x")]
    assert check(parse(json.dumps(backwards))) == faults


def test_sections_are_reported_one_after_another() -> None:
    everything = next(case for case in cases() if case.rule == "ORDER")
    paths = [fault.path.split("/")[1] for fault in check(parse(everything.text))]
    assert " ".join(section for section, _ in groupby(paths)) == (
        "schema_version vars topology cut states vars buffers modules ops programs"
        " buffers modules states vars topology"
    )


def test_every_fault_points_at_something_written() -> None:
    for case in cases():
        for fault in judged(case.text).faults if judged(case.text).parsed else ():
            at = json.loads(case.text)
            for step in fault.path.split("/")[1:]:
                at = at[int(step)] if isinstance(at, list) else at[step]


def test_a_missing_topology_is_said_wherever_a_group_is_named() -> None:
    faults = check(parse(broken(("/topology", ABSENT))))
    assert {fault.rule for fault in faults} == {"T4"}


@pytest.mark.slow
def test_a_large_manifest_is_judged_within_a_second() -> None:
    text = json.dumps(large_manifest())
    assert min(_seconds(text) for _ in range(3)) < 1.0


def _seconds(text: str) -> float:
    begin = time.perf_counter()
    assert check(parse(text)) == []
    return time.perf_counter() - begin


@pytest.mark.slow
def test_a_large_manifest_is_judged_within_300_megabytes() -> None:
    text = json.dumps(large_manifest())
    tracemalloc.start()
    try:
        assert check(parse(text)) == []
        assert tracemalloc.get_traced_memory()[1] < 300e6
    finally:
        tracemalloc.stop()
