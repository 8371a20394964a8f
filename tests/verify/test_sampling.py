"""A sampler's record beside its manifest: every way not to fit is one fault, located."""

from dataclasses import replace

import pytest

from bedstone.build.sampler import KNOBS, sampler_buffers
from bedstone.errors import ManifestError
from bedstone.spec.manifest import Buffer, Domain, Manifest, Var
from bedstone.verify.sampling import check_knobs, require_knobs

VOCAB = 100
TOKEN = Buffer("i32", ("rows",), "input", fill="token", domain=Domain(min=0, max=VOCAB - 1))
MANIFEST = Manifest(
    model="m",
    vars={"rows": Var(8, "rows"), "seqs": Var(4, "groups")},
    states={},
    buffers={"token": TOKEN, **sampler_buffers("seqs", 4, VOCAB, 30)},
    modules={},
    ops={},
    programs={},
)


def with_buffer(name: str, **changes: object) -> Manifest:
    buffers = {**MANIFEST.buffers, name: replace(MANIFEST.buffers[name], **changes)}
    return replace(MANIFEST, buffers=buffers)


def without(name: str) -> Manifest:
    left = {key: value for key, value in MANIFEST.buffers.items() if key != name}
    return replace(MANIFEST, buffers=left)


def test_what_a_compile_makes_fits() -> None:
    assert check_knobs(KNOBS, MANIFEST) == []
    require_knobs(KNOBS, MANIFEST)


def test_a_record_goes_by_what_it_says_and_not_by_names() -> None:
    renamed = {f"b{i}": b for i, b in enumerate(MANIFEST.buffers.values())}
    names = dict(zip(MANIFEST.buffers, renamed, strict=True))
    record = replace(KNOBS, **{name: names[name] for name in KNOBS.__struct_fields__})
    assert check_knobs(record, replace(MANIFEST, buffers=renamed)) == []


@pytest.mark.parametrize(
    ("manifest", "rule", "path", "message"),
    [
        (without("report"), "K-buffer", "/report", "expected a buffer"),
        (with_buffer("report", kind="inout"), "K-kind", "/report", "kind inout, expected input"),
        (with_buffer("report", fill="count"), "K-kind", "/report", "input with a fill"),
        (with_buffer("edits", domain=Domain(min=0)), "K-kind", "/edits", "input with a domain"),
        (with_buffer("edit_add", dtype="bf16"), "K-element", "/edit_add", "bf16, expected f32"),
        (with_buffer("logprob", kind="workspace"), "K-kind", "/logprob", "expected output"),
        (with_buffer("report", shape=("rows",)), "K-shape", "/report", "[rows], expected [seqs]"),
        (with_buffer("report", shape=(4,)), "K-shape", "/report", "[4], expected [seqs]"),
        (
            with_buffer("edit_add", shape=("seqs", 31)),
            "K-shape",
            "/edit_add",
            "[seqs, 31], expected [seqs, 30]",
        ),
        (
            with_buffer("top_logprob", shape=("seqs",)),
            "K-shape",
            "/top_logprob",
            "[seqs], expected [seqs, 20]",
        ),
        (with_buffer("allowed", shape=("seqs",)), "K-shape", "/allowed", "expected [seqs, n]"),
        (with_buffer("allowed", shape=("seqs", 3)), "K-words", "/allowed", "expected 4"),
        (with_buffer("seed", dtype="u64"), "K-settings", "/buffers/seed/dtype", "expected i64"),
        (without("min_p"), "K-settings", "/buffers", "no input has fill `min_p`"),
    ],
)
def test_one_fault_is_one_finding(manifest: Manifest, rule: str, path: str, message: str) -> None:
    (fault,) = check_knobs(KNOBS, manifest)
    assert (fault.rule, fault.path) == (rule, path)
    assert message in fault.message


@pytest.mark.parametrize(
    "domain", [None, Domain(min=0), Domain(min=0, max="rows"), Domain(index_into="s")], ids=str
)
def test_words_are_not_counted_where_nothing_says_how_many_tokens(domain: Domain | None) -> None:
    assert check_knobs(KNOBS, with_buffer("token", domain=domain)) == []


def test_two_knobs_are_not_one_buffer() -> None:
    (fault,) = check_knobs(replace(KNOBS, restricted="report"), MANIFEST)
    assert (fault.rule, fault.path) == ("K-distinct", "/report")


def test_all_faults_are_told_at_once() -> None:
    buffers = {**without("report").buffers, "edits": TOKEN}
    with pytest.raises(ManifestError, match="does not fit manifest `m`") as caught:
        require_knobs(KNOBS, replace(MANIFEST, buffers=buffers))
    assert str(caught.value).count("\n  - ") >= 2
