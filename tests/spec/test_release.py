"""When a package's version is worth a word."""

from bedstone.spec.release import version_note


def test_a05_the_build_suffix_of_a_version_is_no_mismatch():
    assert version_note("1.4.0+cu130", "1.4.0") is None
    assert version_note("1.4.0", "1.4.0+cpu") is None
    note = version_note("1.4.1", "1.4.0")
    assert note is not None
    assert "1.4.1" in note
    assert "1.4.0" in note
