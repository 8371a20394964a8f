"""Which device runs which code, on the verbatim architecture string."""

import pytest

from bedstone.target.architecture import Form, fitting, parse_arch, unfit

DEVICES = ((8, 9), (9, 0), (10, 0), (10, 3), (12, 0), (12, 1), (13, 0))


def who_runs(arch: str, form: Form) -> set[tuple[int, int]]:
    return {device for device in DEVICES if unfit(arch, form, device) is None}


@pytest.mark.parametrize(
    ("arch", "devices"),
    [
        ("sm_90", {(9, 0)}),
        ("sm_90a", {(9, 0)}),
        ("sm_100", {(10, 0), (10, 3)}),
        ("sm_100a", {(10, 0)}),
        ("sm_100f", {(10, 0), (10, 3)}),
        ("sm_120", {(12, 0), (12, 1)}),
        ("sm_120a", {(12, 0)}),
        ("sm_120f", {(12, 0), (12, 1)}),
        ("sm_121f", {(12, 1)}),
        ("sm_103a", {(10, 3)}),
    ],
)
def test_a07_which_device_runs_a_cubin(arch, devices):
    assert who_runs(arch, "cubin") == devices


@pytest.mark.parametrize(
    ("arch", "devices"),
    [
        ("sm_80", set(DEVICES)),
        ("sm_90", set(DEVICES) - {(8, 9)}),
        ("sm_90a", {(9, 0)}),
        ("sm_100a", {(10, 0)}),
        ("sm_100f", {(10, 0), (10, 3)}),
        ("sm_121f", {(12, 1)}),
    ],
)
def test_a07_ptx_without_a_suffix_compiles_upward_and_no_other(arch, devices):
    assert who_runs(arch, "ptx") == devices


def test_one_device_of_a_major_version_may_be_a_family_of_its_own():
    assert unfit("sm_100f", "cubin", (10, 1)) is not None
    assert unfit("sm_101f", "cubin", (10, 3)) is not None
    assert unfit("sm_101f", "cubin", (10, 1)) is None


@pytest.mark.parametrize(
    "arch", ["sm_9", "sm_", "sm_90b", "sm_90A", "gfx1151", "", "sm_090", " sm_90"]
)
def test_what_is_no_architecture_fits_no_device(arch):
    assert parse_arch(arch) is None
    assert "no architecture" in (unfit(arch, "cubin", (9, 0)) or "")


@pytest.mark.parametrize(
    ("arch", "form", "reason"),
    [
        ("sm_90a", "cubin", "cubin for `sm_90a` runs only on 9.0; the device is 8.9"),
        ("sm_90", "ptx", "ptx for `sm_90` needs 9.0 or later; the device is 8.9"),
        ("sm_90", "cubin", "cubin for `sm_90` needs 9.0 or a later 9.x; the device is 8.9"),
        (
            "sm_120f",
            "ptx",
            "ptx for `sm_120f` runs only on 12.0 and later devices of its family; "
            "the device is 8.9",
        ),
    ],
)
def test_a_refusal_says_what_would_fit(arch, form, reason):
    assert unfit(arch, form, (8, 9)) == reason


def test_the_sets_that_fit_a_device_are_found_by_their_architecture():
    sets = (("hopper", "sm_90a"), ("ada", "sm_89"), ("blackwell", "sm_100a"), ("gb10", "sm_121a"))
    assert fitting((9, 0), sets) == ("hopper",)
    assert fitting((12, 1), sets) == ("gb10",)
    assert fitting((12, 0), sets) == ()
