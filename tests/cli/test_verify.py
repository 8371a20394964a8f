import json
import shutil

import pytest

from bedstone.cli.protocol import describe
from bedstone.verify import verify
from bedstone.verify.protocol import protocol
from calls_toy import Calls, calls_manifest
from command_line import bedstone
from conformance_cases import ROOT, accepted_text, patched
from large_manifest import large_manifest

PAGED = ROOT / "accept" / "04_paged_serving.json"
KERNEL = b"kernel"
SHA256 = "6923dd1bc0460082c5d55a831908c24a282860b7f1cd6c2b79cf1bc8857c639c"


def written(tmp_path, *mutations, base="04_paged_serving"):
    """A manifest's file after `op path value` mutations."""
    steps = [
        {"op": op, "path": path, **({"value": value[0]} if value else {})}
        for op, path, *value in mutations
    ]
    path = tmp_path / "m.json"
    path.write_text(json.dumps(patched(json.loads(accepted_text(base)), steps)))
    return path


def test_a_good_manifest_is_accepted_with_its_protocol():
    ended = bedstone("verify", PAGED)
    assert (ended.code, ended.err) == (0, "")
    assert "accepted" in ended.out
    assert "page table of kv, 4 pages of 16 tokens a sequence" in ended.out
    assert "decode_many  up to 8 sequences of 1 row" in ended.out


def test_a_manifest_for_a_harness_is_accepted_without_a_protocol():
    ended = bedstone("verify", ROOT / "accept" / "02_impl.json")
    assert ended.code == 0
    assert "only a harness runs it" in ended.out


def test_every_fault_is_listed(tmp_path):
    path = written(
        tmp_path,
        ("replace", "/vars/seqs/max", 0),
        ("replace", "/programs/decode/calls/0/op", "gone"),
    )
    ended = bedstone("verify", path)
    assert ended.code == 1
    assert ended.out.startswith(f"rejected: {path}: ")
    assert "/vars/seqs/max: var `seqs`" in ended.out
    assert "`gone`" in ended.out


def test_a_manifest_that_fits_no_serving_loop_is_rejected(tmp_path):
    path = written(tmp_path, ("replace", "/programs/decode_many/batch/groups", 9))
    ended = bedstone("verify", path)
    assert ended.code == 1
    assert "[R-groups]" in ended.out


def test_a_caller_may_bring_its_own_sampler(tmp_path):
    path = written(tmp_path, ("remove", "/buffers/next/fill"))
    assert bedstone("verify", path).code == 1
    assert bedstone("verify", path, "--own-sampler").code == 0


def test_json_says_the_same(tmp_path):
    path = written(tmp_path, ("replace", "/vars/seqs/max", 0))
    ended = bedstone("verify", path, "--json")
    report = json.loads(ended.out)
    assert ended.code == 1
    assert (report["verdict"], report["model"], report["protocol"]) == ("rejected", "paged", None)
    assert report["faults"][0]["rule"] == "V1"
    assert report["faults"][0]["objects"] == ["var seqs"]
    good = json.loads(bedstone("verify", PAGED, "--json").out)
    assert (good["verdict"], good["faults"]) == ("accepted", [])
    assert [shape["program"] for shape in good["protocol"]["shapes"]] == [
        "decode",
        "decode_many",
        "prefill",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [(b"{", "not JSON"), (b"\xff", "not UTF-8"), (b"[" * 200 + b"]" * 200, "128")],
)
def test_text_that_is_not_json_is_bad_input(tmp_path, text, words):
    path = tmp_path / "m.json"
    path.write_bytes(text)
    ended = bedstone("verify", path)
    assert (ended.code, ended.out) == (2, "")
    assert str(path) in ended.err
    assert words in ended.err or words == "128"
    assert ended.err.count("\n") == 1


def test_json_that_is_no_manifest_is_rejected(tmp_path):
    path = tmp_path / "m.json"
    path.write_text('{"schema_version": 7, "model": 3}')
    ended = bedstone("verify", path)
    assert ended.code == 1
    assert "model" in ended.out


def test_a_file_that_cannot_be_read_is_bad_input(tmp_path):
    ended = bedstone("verify", tmp_path / "nowhere.json")
    assert ended.code == 2
    assert (
        ended.err
        == f"bedstone: `{tmp_path}/nowhere.json` cannot be read: No such file or directory\n"
    )
    ended = bedstone("verify", tmp_path)
    assert ended.code == 2
    assert "manifest.json` cannot be read" in ended.err


@pytest.mark.parametrize(
    "mutation",
    [
        ("remove", "/modules/k/sha256"),
        ("replace", "/modules/k/sha256", ""),
        ("replace", "/modules/k/sha256", "12ab"),
        ("replace", "/modules/k/sha256", 12),
        ("replace", "/modules/k/sha256", None),
    ],
)
def test_a_digest_that_is_none_is_a_fault_of_the_manifest(tmp_path, mutation):
    ended = bedstone("verify", written(tmp_path, mutation))
    assert ended.code == 1
    assert "/modules/k" in ended.out
    assert "[kernel]" not in ended.out


# --- kernel files --------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path):
    """A package whose one module is the file kernels/k.so."""
    folder = tmp_path / "package"
    (folder / "kernels").mkdir(parents=True)
    (folder / "kernels" / "k.so").write_bytes(KERNEL)
    manifest = written(folder, ("replace", "/modules/k", {"source": "k.so", "sha256": SHA256}))
    manifest.rename(folder / "manifest.json")
    return folder


def test_a_packages_kernels_are_found(package):
    ended = bedstone("verify", package)
    assert ended.code == 0
    assert "kernels: 1 of 1 files checked" in ended.out


def test_a_changed_kernel_says_path_expected_and_actual(package):
    kernel = package / "kernels" / "k.so"
    kernel.write_bytes(b"kernem")
    ended = bedstone("verify", package)
    assert ended.code == 1
    assert f"module `k`: `{kernel}` has sha256 " in ended.out
    assert f"expected {SHA256}" in ended.out
    (module,) = json.loads(bedstone("verify", package, "--json").out)["modules"]
    assert (module["state"], module["path"], module["expected"]) == ("changed", str(kernel), SHA256)
    assert len(module["actual"]) == 64
    assert module["actual"] != SHA256


def test_a_kernel_is_found_under_any_name_by_its_bytes(package):
    (package / "kernels" / "k.so").rename(package / "kernels" / "other")
    assert bedstone("verify", package).code == 0


def test_a_changed_file_that_bears_the_hash_in_its_name_is_the_changed_one(package):
    bearer = package / "kernels" / f"k-{SHA256[:12]}.so"
    (package / "kernels" / "k.so").rename(bearer)
    bearer.write_bytes(b"else")
    ended = bedstone("verify", package)
    assert ended.code == 1
    assert f"`{bearer}` has sha256" in ended.out


def test_a_missing_kernel_is_a_fault_where_a_folder_is_named(package, tmp_path):
    (package / "kernels" / "k.so").unlink()
    ended = bedstone("verify", package)
    assert ended.code == 1
    assert f"no file with sha256 {SHA256} in `{package / 'kernels'}`" in ended.out
    alone = shutil.copy(package / "manifest.json", tmp_path / "alone.json")
    assert bedstone("verify", alone).code == 0
    ended = bedstone("verify", alone, "--kernels", tmp_path / "nowhere")
    assert ended.code == 2
    assert "is not a folder of kernels" in ended.err


@pytest.mark.parametrize("source", ["../k.so", "/etc/hostname", "a\0b", "hf:o/r/k.so"])
def test_a_source_never_leads_out_of_the_folder(package, source):
    outside = package / "k.so"
    outside.write_bytes(b"outside")
    document = json.loads((package / "manifest.json").read_text())
    document["modules"]["k"]["source"] = source
    (package / "manifest.json").write_text(json.dumps(document))
    (module,) = json.loads(bedstone("verify", package, "--json").out)["modules"]
    assert module["path"] == str(package / "kernels" / "k.so")
    assert module["state"] == "found"


def test_a_manifest_of_2500_calls_is_judged_in_full(tmp_path):
    path = tmp_path / "large.json"
    path.write_text(json.dumps(large_manifest()))
    ended = bedstone("verify", path)
    assert ended.code == 1
    assert {line.rsplit("[", 1)[1] for line in ended.out.splitlines()[1:]} == {
        "R-token]",
        "R-hands-back]",
    }


def test_a_chain_of_rounds_says_that_some_of_its_tokens_are_taken():
    calls = Calls(steps=(), rounds=(4,), chains=True)
    *_, shape, chain = describe(protocol(verify(calls_manifest("0" * 64, calls))))
    assert shape.endswith("hands back several, 4 a sequence, taken of them taken, captured")
    assert chain.endswith("after chunk, step.4.4, hands back several, taken of them taken")
