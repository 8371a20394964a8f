"""Reported cases about manifests and the files they pin; each named after its id."""

import hashlib
import json

import pytest

from command_line import bedstone
from conformance_cases import accepted_text


def manifest(path, modules):
    """Write a manifest whose modules are those files; the first is the one that is launched."""
    document = json.loads(accepted_text("01_minimal"))
    document["modules"] = modules
    op = document["ops"]["twice"]
    (launch,) = op["impl"]["launches"]
    op["impl"]["launches"] = [launch | {"module": name} for name in modules]
    path.write_text(json.dumps(document))
    return path


def pinned(root, source):
    digest = hashlib.sha256((root / source).read_bytes()).hexdigest()
    return {"source": source, "sha256": digest}


def test_a01_a_kernel_file_changed_after_the_manifest_was_written(tmp_path):
    kernel = tmp_path / "k.cubin"
    kernel.write_bytes(bytes.fromhex("7f454c46"))
    module = pinned(tmp_path, "k.cubin")
    assert module["sha256"] == "3bdbb4fe8397cd2b842430b39ccff01a8663c751945ef5e9a09e267fb8b1d359"
    path = manifest(tmp_path / "m.json", {"k": module})
    assert bedstone("verify", path).code == 0

    kernel.write_bytes(bytes.fromhex("7f454c47"))
    ended = bedstone("verify", path)
    actual = hashlib.sha256(kernel.read_bytes()).hexdigest()
    assert ended.code == 1
    assert all(words in ended.out for words in (str(kernel), module["sha256"], actual))

    kernel.write_bytes(bytes.fromhex("7f454c46"))
    assert bedstone("verify", path).code == 0


@pytest.mark.parametrize("named", [True, False])
def test_a03_two_artifacts_with_the_same_file_name_in_different_folders(tmp_path, named):
    sources = ("sm90/k.cubin", "sm100/k.cubin")
    for source, data in zip(sources, (b"A", b"B"), strict=True):
        (tmp_path / source).parent.mkdir()
        (tmp_path / source).write_bytes(data)
    modules = {source.split("/")[0]: pinned(tmp_path, source) for source in sources}
    path = manifest(tmp_path / "m.json", modules)
    options = ["--kernels", tmp_path] if named else []
    report = json.loads(bedstone("verify", path, "--json", *options).out)
    assert [module["state"] for module in report["modules"]] == ["found", "found"]

    for source, data in zip(sources, (b"B", b"A"), strict=True):
        (tmp_path / source).write_bytes(data)
    ended = bedstone("verify", path, *options)
    assert ended.code == 1
    assert "2 faults" in ended.out
    assert all(f"`{tmp_path / source}` has sha256" in ended.out for source in sources)
