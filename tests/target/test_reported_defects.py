"""Defects of other engines' targets that no other test here names, each by what went wrong there.

`docs/targets.md` lists them all, with the test that holds each.
"""

import re
from pathlib import Path

import msgspec
import pytest

from bedstone.library.catalog import cpu_kernels
from bedstone.spec.package import Target, emit_json, parse_target
from bedstone.spec.target import (
    Dflash,
    HardwareRecord,
    KernelRecord,
    ModelRecord,
    Policy,
    Preset,
    Sampling,
)
from bedstone.target.audit import Built, Wanted, audit
from bedstone.target.cpu import refuses, runnable
from bedstone.target.gpu import Gpu, refuses_gpu
from bedstone.target.hardware import read_sets
from bedstone.target.models import read_models
from bedstone.target.sources import read_sources
from bedstone.target.toolchain import Compiler, unit_digest
from bedstone.target.tree import check_tree
from kernel_trees import MODEL, hardware, write_tree

DOCS = Path(__file__).parents[2] / "docs" / "targets.md"
TESTS = Path(__file__).parents[1]


def target(policy: Policy) -> Target:
    return Target("a", "a", (), "m", None, False, "0" * 64, {}, {}, policy)


@pytest.mark.parametrize(
    "name", ["base/HARDWARE.toml", "base/common/KERNEL.toml", "base/llama/MODEL.toml"]
)
@pytest.mark.parametrize("text", ["a = [", "stray = 1\n", "\xff", "policy = 1\n"])
def test_1_7_4_a_broken_record_of_any_kind_is_a_fault_and_never_a_default(tmp_path, name, text):
    files = {**hardware("base"), "base/llama/MODEL.toml": MODEL, "base/common/KERNEL.toml": ""}
    kernels = write_tree(tmp_path, files)
    (kernels / name).write_bytes(text.encode("latin-1"))
    faults = check_tree(kernels)
    assert faults
    assert {fault.file for fault in faults} == {f"kernels/{name}"}


def test_1_7_5_a_default_is_the_same_in_a_record_and_where_it_is_read():
    (empty,) = (msgspec.convert({"routing": {"model_types": [{"model_type": "m"}]}}, ModelRecord),)
    assert empty.policy == Policy()
    assert parse_target(emit_json(target(empty.policy)), "").policy == Policy()


@pytest.mark.parametrize("value", [0.925, 0.005, 0.1 + 0.2, 1e-17, 1.9999999999999998])
def test_1_7_6_a_number_reaches_the_package_with_every_digit(value):
    policy = Policy(sampling=Sampling(tools=Preset(temperature=value)))
    assert parse_target(emit_json(target(policy)), "").policy.sampling.tools.temperature == value


@pytest.mark.parametrize("text", ['say "hi"', "back\\slash", "new\nline", "zero\0byte", "ünï"])
def test_1_7_7_a_text_reaches_the_package_as_it_was_written(text):
    policy = Policy(dflash=Dflash(draft_model=text, mask_token_id=0, layer_ids=()))
    assert parse_target(emit_json(target(policy)), "").policy == policy


def test_1_7_8_one_label_is_one_module():
    made: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {}
    for kernel in cpu_kernels().kernels.values():
        what = kernel.source, tuple(sorted(kernel.defines.items()))
        assert made.setdefault(kernel.module, what) == what
        assert re.fullmatch(r"[a-z0-9][a-z0-9_-]*", kernel.module)
        assert re.fullmatch(r"[a-z][a-z0-9_]*", kernel.entry)
    assert len(set(made.values())) == len(made)


def test_8_2_a_lookup_is_asked_of_every_set_before_any_model_asks_for_it():
    """An entry that some set lacks fails there, whoever added the lookup and for whichever set."""
    wanted = Wanted("fused_for_one_set", "Scan", None, None, None)
    for each in read_sets().values():
        if each.vendor == "cpu":
            (finding, *_) = audit([wanted], Built({}, {}), read_sources(each).absences())
            assert finding.status == "never_built"
            assert "`Scan` has no other launch" in finding.note


def test_8_5_another_policy_is_no_other_kernel(tmp_path):
    policy = "[policy.sampling.tools]\ntemperature = 0.1\n[policy.behavior]\nmin_p_floor = 0.1\n"
    digests = []
    for at, more in enumerate(("", policy)):
        files = {"base/llama/MODEL.toml": MODEL + more, "base/common/norm.c": "int norm;\n"}
        kernels = write_tree(tmp_path / str(at), hardware("base"), files)
        base = read_sets(kernels)["base"]
        model = read_models(base, kernels)["llama"]
        unit = read_sources(base, model, kernels=kernels).unit("norm.c", {})
        digests.append(unit_digest(unit, Compiler(("cc",), "cc")))
    assert digests[0] == digests[1]


@pytest.mark.parametrize("key", ["sm_count", "memory_gb", "force_br32_prefill"])
def test_8_11_a_set_states_no_number_that_sizes_a_launch_nor_a_key_nobody_reads(tmp_path, key):
    kernels = write_tree(tmp_path, hardware("base", more=f"{key} = 48\n"))
    (fault,) = check_tree(kernels)
    assert f"`hardware.{key}`: unknown key" in str(fault)


def test_8_12_a_set_is_what_its_record_says_and_not_what_it_is_called(tmp_path):
    kernels = write_tree(
        tmp_path,
        hardware("nvidia-like", vendor="cpu"),
        hardware("cpu-like", vendor="nvidia", arch="sm_90a"),
    )
    sets = read_sets(kernels)
    assert runnable(sets, frozenset()) == ("nvidia-like",)
    assert refuses_gpu(sets["cpu-like"], [Gpu(0, (9, 0), (13, 0))], sets.values()) is None


def test_8_17_an_unresolved_symbol_is_an_error_of_the_build(tmp_path):
    from bedstone.errors import KernelError
    from bedstone.target.toolchain import Unit, compile_unit, find_compiler

    (tmp_path / "a.c").write_text("extern int nowhere(int);\nint a(int x) { return nowhere(x); }\n")
    with pytest.raises(KernelError, match=r"`a\.c` does not compile"):
        compile_unit(Unit((tmp_path / "a.c",)), cache=tmp_path, compiler=find_compiler())


def test_8_21_what_a_wheel_ships_is_the_whole_tree():
    """Kernels are shipped as sources and compiled where they run: no list leaves one out."""
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert 'packages = ["src/bedstone"]' in text
    assert "exclude" not in text.partition("[tool.hatch.build")[2].partition("[tool.ruff")[0]


def test_8_23_a_refusal_says_whether_it_is_the_machine_or_the_choice():
    sets = read_sets()
    assert refuses(sets["hopper"], frozenset()) == "is for a GPU (`sm_90a`), not for a CPU"
    assert refuses_gpu(sets["hopper"], [], sets.values()) == "this machine has no NVIDIA GPU"
    blackwell = refuses_gpu(sets["hopper"], [Gpu(0, (10, 0), (13, 0))], sets.values())
    assert blackwell is not None
    assert "which runs `blackwell`" in blackwell


@pytest.mark.parametrize("kind", [HardwareRecord, KernelRecord, ModelRecord])
def test_8_better_1_a_record_has_a_schema(kind):
    schema = msgspec.json.schema(kind)
    tables = schema["$defs"].values()
    assert all(table["additionalProperties"] is False for table in tables)


def rows() -> list[tuple[str, str]]:
    """Each defect of the documentation's table, and the test it names."""
    found = re.findall(r"^\| (§\S+) .*\| `(tests/\S+)` \|$", DOCS.read_text(), re.MULTILINE)
    assert len(found) > 30
    return found


def test_every_defect_of_the_table_has_the_test_it_names():
    for defect, named in rows():
        path, _, name = named.partition("::")
        text = (TESTS.parent / path).read_text()
        assert f"def {name}(" in text, f"{defect}: {named} is not there"


def test_every_reported_defect_is_in_the_table():
    text = DOCS.read_text()
    listed = set(re.findall(r"^\| (§\S+) ", text, re.MULTILINE))
    assert listed >= {f"§1.7.{n}" for n in range(1, 11)} | {f"§8.{n}" for n in range(1, 33)}
