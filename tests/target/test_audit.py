"""What becomes of a lookup: found, excused, or a failure that says what is lost."""

import pytest

from bedstone.target.audit import Absence, Built, Wanted, audit, failures
from bedstone.target.blob import Blob, kernel_set_hash


def blob(module: str, *entries: str, abi: str | None = "i32", sha256: str = "0" * 64) -> Blob:
    return Blob(module, "shared_object", "generic", sha256, dict.fromkeys(entries, abi))


def wanted(entry: str, without: str | None = None, abi: str | None = "i32") -> Wanted:
    return Wanted(entry, "Norm", without, "norm", abi)


def built(*blobs: Blob, hidden: tuple[Blob, ...] = ()) -> Built:
    return Built({b.module: b for b in blobs}, {b.module: b for b in hidden})


def absence(pattern: str, *, own: bool = True) -> Absence:
    return Absence(pattern, "not needed", "kernels/a/common/KERNEL.toml", own)


def statuses(*args: object) -> dict[str, str]:
    return {finding.entry: finding.status for finding in audit(*args)}


def test_an_entry_that_is_there_is_found():
    (finding,) = audit([wanted("norm")], built(blob("norm", "norm")), [])
    assert (finding.status, finding.module, finding.good) == ("found", "norm", True)


def test_an_entry_without_a_kernel_fails_and_says_what_is_lost():
    asked = [wanted("norm"), wanted("norm_q", "a launch of its own quantizes")]
    found = audit(asked, built(blob("norm", "norms")), [])
    assert [finding.status for finding in failures(found)] == ["never_built"] * 2
    assert "did you mean `norms`?" in found[0].note
    assert "`Norm` has no other launch" in found[0].note
    assert "without it `Norm` does not fire and a launch of its own quantizes" in found[1].note


def test_an_entry_of_other_parameters_fails_with_both():
    (finding,) = audit([wanted("norm")], built(blob("norm", "norm", abi="i64")), [])
    assert finding.status == "other_abi"
    assert "expected the parameters `i32`, the module states `i64`" in finding.note


@pytest.mark.parametrize(("asked", "stated"), [(None, "i32"), ("i32", None)])
def test_parameters_nobody_states_are_not_compared(asked, stated):
    found = audit([wanted("norm", abi=asked)], built(blob("norm", "norm", abi=stated)), [])
    assert failures(found) == []


def test_an_entry_that_a_nearer_file_dropped_fails_and_nothing_excuses_it():
    set_ = built(blob("norm", "norm"), hidden=(blob("norm", "norm", "norm_q"),))
    asked = [wanted("norm"), wanted("norm_q")]
    assert statuses(asked, set_, [])["norm_q"] == "dropped"
    assert statuses(asked, set_, [absence("norm_q")])["norm_q"] == "dropped"


def test_another_module_of_the_same_entry_will_not_do():
    other = blob("norm-half", "norm")
    (finding,) = audit([wanted("norm")], built(other, blob("norm", "norms")), [])
    assert (finding.status, finding.module) == ("never_built", "norm")
    hidden = blob("norm-half", "norm")
    (finding,) = audit([wanted("norm")], built(hidden=(hidden,)), [])
    assert finding.status == "never_built"


def test_an_expected_absence_is_excused_with_its_reason():
    (finding,) = audit([wanted("norm_q")], built(), [absence("norm_*")])
    assert (finding.status, finding.good) == ("expected_absent", True)
    assert finding.note == "not needed (kernels/a/common/KERNEL.toml)"


@pytest.mark.parametrize(
    ("pattern", "why"),
    [("norm", "`norm` is found"), ("*", "`norm` is found"), ("nurm", "nothing asks for such")],
)
def test_an_exemption_that_is_stale_fails(pattern, why):
    found = audit([wanted("norm")], built(blob("norm", "norm")), [absence(pattern)])
    (finding,) = failures(found)
    assert (finding.entry, finding.status) == (pattern, "stale_exemption")
    assert why in finding.note


def test_an_inherited_exemption_may_be_overtaken():
    found = audit([wanted("norm")], built(blob("norm", "norm")), [absence("norm", own=False)])
    assert failures(found) == []


def test_the_hash_of_a_set_covers_the_bytes():
    one, other = blob("norm", sha256="1" * 64), blob("norm", sha256="2" * 64)
    assert kernel_set_hash([one]) != kernel_set_hash([other])
    rope = blob("rope")
    assert kernel_set_hash([one, rope]) == kernel_set_hash([rope, one])
