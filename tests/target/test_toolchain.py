"""The C compiler: which one, what it makes, and what it says where it cannot."""

import importlib.util
import multiprocessing
import platform
from pathlib import Path

import pytest

from bedstone.errors import CallerError, KernelError, TargetError
from bedstone.target.toolchain import (
    Compiler,
    Unit,
    compile_many,
    compile_unit,
    find_compiler,
    unit_digest,
)

SOURCE = "#include <one.h>\nint answer(void) { return ONE + SCALE; }\n"


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return find_compiler()


@pytest.fixture
def unit(tmp_path: Path) -> Unit:
    (tmp_path / "one.h").write_text("#define ONE 1\n")
    (tmp_path / "answer.c").write_text(SOURCE)
    return Unit((tmp_path / "answer.c",), ("-O1",), {"SCALE": "41"}, (tmp_path,))


def build(unit: Unit, cache: Path, compiler: Compiler) -> Path:
    return compile_unit(unit, cache=cache, compiler=compiler)


def test_the_first_compiler_on_path_is_taken_with_its_identity() -> None:
    asked = []

    def which(name: str) -> str | None:
        asked.append(name)
        return "/bin/echo" if name == "gcc" else None

    found = find_compiler(which=which)
    assert asked == ["cc", "gcc"]
    assert found.command == ("/bin/echo",)
    assert found.identity.startswith("echo")


@pytest.mark.skipif(
    importlib.util.find_spec("ziglang") is None, reason="the `ziglang` package is not installed"
)
def test_without_one_the_ziglang_package_serves() -> None:
    found = find_compiler(which=lambda _: None)
    assert found.command[1:] == ("-m", "ziglang", "cc")
    assert found.identity.startswith("zig cc ")


def test_without_either_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(TargetError, match="pip install ziglang") as raised:
        find_compiler(which=lambda _: None)
    assert raised.value.exit_code == 3


def test_a_second_build_is_the_first_ones_file(
    unit: Unit, tmp_path: Path, compiler: Compiler
) -> None:
    first = build(unit, tmp_path / "cache", compiler)
    stamp = first.stat().st_mtime_ns
    assert build(unit, tmp_path / "cache", compiler) == first
    assert first.stat().st_mtime_ns == stamp
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [first.name]


def test_the_same_inputs_give_the_same_bytes(
    unit: Unit, tmp_path: Path, compiler: Compiler
) -> None:
    made = [build(unit, tmp_path / place, compiler) for place in ("one", "two")]
    assert made[0].name == made[1].name
    assert made[0].read_bytes() == made[1].read_bytes()
    assert str(tmp_path).encode() not in made[0].read_bytes()


def test_everything_that_decides_the_bytes_decides_the_name(unit: Unit, compiler: Compiler) -> None:
    names = {unit_digest(unit, compiler)}
    variants = [
        Unit(unit.sources, ("-O2",), unit.defines, unit.include),
        Unit(unit.sources, unit.flags, {"SCALE": "4"}, unit.include),
        Unit(unit.sources, unit.flags, unit.defines, ()),
        Unit(unit.sources, unit.flags, unit.defines, unit.include, ("-lm",)),
    ]
    names |= {unit_digest(variant, compiler) for variant in variants}
    names.add(unit_digest(unit, Compiler(compiler.command, "another compiler")))
    (unit.include[0] / "one.h").write_text("#define ONE 2\n")
    names.add(unit_digest(unit, compiler))
    unit.sources[0].write_text(SOURCE + "\n")
    names.add(unit_digest(unit, compiler))
    assert len(names) == 8


def test_what_is_for_the_linker_serves_the_sources_before_it(
    tmp_path: Path, compiler: Compiler
) -> None:
    source = tmp_path / "root.c"
    source.write_text("double cbrt(double x); double root(double x) { return cbrt(x); }")
    build(Unit((source,), link=("-lm",)), tmp_path / "cache", compiler)
    with pytest.raises(KernelError, match="cbrt"):
        build(Unit((source,)), tmp_path / "cache", compiler)


def test_a_source_that_does_not_compile_is_named_with_the_first_lines(
    unit: Unit, tmp_path: Path, compiler: Compiler
) -> None:
    unit.sources[0].write_text("int answer(void) { return forty_two; }\n")
    with pytest.raises(KernelError, match=r"`answer\.c` does not compile[\s\S]*forty_two"):
        build(unit, tmp_path / "cache", compiler)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_compiler_that_cannot_run_is_the_machines_fault(unit: Unit, tmp_path: Path) -> None:
    missing = Compiler((str(tmp_path / "nocc"),), "none")
    with pytest.raises(TargetError, match="cannot be run"):
        build(unit, tmp_path / "cache", missing)


def test_a_cache_that_cannot_be_written_is_the_callers(
    unit: Unit, tmp_path: Path, compiler: Compiler
) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CallerError, match=r"cache directory `.*` cannot be written: Not a dir"):
        build(unit, tmp_path / "file" / "cache", compiler)


def test_another_system_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    with pytest.raises(TargetError, match="run on Linux; this is `Darwin`"):
        find_compiler()


def test_processes_that_build_at_once_compile_once(
    unit: Unit, tmp_path: Path, compiler: Compiler
) -> None:
    log, script = tmp_path / "log", tmp_path / "cc"
    script.write_text(f'#!/bin/sh\necho >>"{log}"\nsleep 0.3\nexec "{compiler.command[0]}" "$@"\n')
    script.chmod(0o755)
    slow = Compiler((str(script),), "slow")
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        paths = pool.starmap(build, [(unit, tmp_path / "cache", slow)] * 3)
    assert len(set(paths)) == 1
    assert log.read_text() == "\n"
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [paths[0].name]


def test_many_units_come_back_in_order(unit: Unit, tmp_path: Path, compiler: Compiler) -> None:
    units = [Unit(unit.sources, unit.flags, {"SCALE": str(i)}, unit.include) for i in range(3)]
    together = compile_many(units, cache=tmp_path / "a", compiler=compiler)
    for one, path in zip(units, together, strict=True):
        assert compile_unit(one, cache=tmp_path / "b", compiler=compiler).name == path.name
