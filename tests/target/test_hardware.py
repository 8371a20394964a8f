"""Hardware sets: what a set holds itself, what it inherits, and its flags."""

from pathlib import Path

import pytest

from bedstone.errors import TargetError
from bedstone.library.catalog import cpu_kernels
from bedstone.target.cpu import HARDWARE_SETS
from bedstone.target.hardware import read_hardware


def test_a_set_shadows_files_and_adds_flags(tmp_path: Path) -> None:
    for name, record in {
        "base": 'name = "base"\nflags = ["-a"]\n',
        "leaf": 'name = "leaf"\ninherits = "base"\nflags = ["-b"]\n',
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "HARDWARE.toml").write_text(record)
        (tmp_path / name / "shared.h").write_text(name)
    (tmp_path / "base" / "only.c").write_text("")
    leaf = read_hardware("leaf", tmp_path)
    assert leaf.flags == ("-a", "-b")
    assert leaf.source("shared.h") == tmp_path / "leaf" / "shared.h"
    assert leaf.source("only.c") == tmp_path / "base" / "only.c"
    with pytest.raises(TargetError, match=r"`leaf` has no kernel source `none\.c`"):
        leaf.source("none.c")


@pytest.mark.parametrize("name", [name for name, _ in HARDWARE_SETS])
def test_every_set_holds_every_source_of_the_catalog(name: str) -> None:
    hardware = read_hardware(name)
    for source in {kernel.source for kernel in cpu_kernels().kernels.values()}:
        assert hardware.source(source).is_file()


def test_an_unknown_set_is_answered_with_the_known_ones() -> None:
    with pytest.raises(TargetError, match="`cpu-generic`, `cpu-x86-64-v3`, `cpu-x86-64-v4`"):
        read_hardware("cpu-fast")


def test_a_record_must_name_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "HARDWARE.toml").write_text('name = "two"\nflags = []\n')
    with pytest.raises(TargetError, match="expected name = `one`"):
        read_hardware("one", tmp_path)
