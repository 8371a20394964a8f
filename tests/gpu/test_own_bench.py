"""Our own set as a user runs it: exported, compiled, and every Solution held on the GPU."""

import json
import shutil

import pytest

from command_line import bedstone

KERNELS = (
    "add",
    "add_norm",
    "attention",
    "delta",
    "linear_q_bf16",
    "linear_q8_0",
    "rope_table",
    "xdown_q_q8_0",
)
PARTS = 8
"""Of all Definitions, so that processes can share them."""

QUICK = ("--trials", 1, "--warmup", 1, "--iterations", 5, "--warm", "--device", "cuda")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Some kernels at a model's sizes, or small ones where it does not call them."""
    folder = tmp_path_factory.mktemp("own") / "set"
    patterns = [word for kernel in KERNELS for word in ("--kernel", kernel)]
    model = ("--config", "smollm2-135m")
    ended = bedstone("define", "export", folder, *model, *patterns, "--target", "hopper")
    assert ended.code == 0, ended.err
    return folder


@pytest.fixture(autouse=True)
def kept(cache, monkeypatch):
    monkeypatch.setenv("BEDSTONE_CACHE", str(cache))


@pytest.fixture(scope="module")
def solutions(exported):
    """The names of the set's Solutions, by their Definition's."""
    found = {}
    for path in sorted((exported / "solutions").rglob("*.json")):
        solution = json.loads(path.read_text())
        found.setdefault(solution["definition"], set()).add(solution["name"])
    return found


def test_every_kernel_is_exported_and_its_variants(solutions):
    for kernel in KERNELS:
        assert any(f"{name}_".startswith(f"{kernel}_") for name in solutions), kernel
    every = set().union(*solutions.values())
    assert {"batch", "tall"} <= {name.split(".")[1] for name in every}


@pytest.mark.parametrize("part", range(PARTS))
def test_bench_runs_every_kernel_of_a_set(exported, solutions, part):
    names = sorted(solutions)[part::PARTS]
    built = bedstone("define", "build", exported)
    assert built.code == 0, built.err
    asked = [word for name in names for word in ("--definition", name)]
    ended = bedstone("define", "bench", exported, *asked, *QUICK, "--json")
    document = json.loads(ended.out)
    failed = [
        (t["solution"], t["evaluation"]["status"], t["evaluation"]["log"][:400])
        for t in document["traces"]
        if t["evaluation"]["status"] != "PASSED"
    ]
    assert failed == []
    assert document["skipped"] == []
    assert ended.code == 0, ended.err
    found = {t["solution"] for t in document["traces"]}
    assert found == set().union(*(solutions[name] for name in names))


def test_another_kernels_code_and_fewer_blocks_are_caught(exported, tmp_path):
    folder = shutil.copytree(exported, tmp_path / "set")
    path = next((folder / "solutions").rglob("add.hopper.json"))
    honest = json.loads(path.read_text())
    product = honest | {"name": "product", "spec": dict(honest["spec"])}
    product["spec"]["entry_point"] = honest["spec"]["entry_point"].replace("::add", "::mul")
    fewer = honest | {"name": "fewer", "sources": [dict(s) for s in honest["sources"]]}
    (call,) = (s for s in fewer["sources"] if s["path"] == "call.json")
    said = json.loads(call["content"])
    call["content"] = json.dumps(said | {"grid": [1, 1, 1]})
    for each in (product, fewer):
        path.with_name(f"{each['name']}.json").write_text(json.dumps(each))
    names = ("--solution", "product", "--solution", "fewer")
    ended = bedstone("define", "bench", folder, *names, *QUICK, "--json")
    traces = json.loads(ended.out)["traces"]
    found = {(t["solution"], t["evaluation"]["status"]) for t in traces}
    assert ended.code == 1
    assert ("product", "INCORRECT_NUMERICAL") in found
    assert ("fewer", "INCORRECT_NUMERICAL") in found
    assert ("product", "PASSED") not in found
