from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bedstone.prove.swap.diff import align, diff
from bedstone.spec.codec import parse
from bedstone.spec.manifest import Manifest, Module

KEYS = st.lists(st.sampled_from(["a", "b", "c", None]), max_size=7)


def longest(a, b) -> int:
    """The length of a longest common subsequence, by trying everything."""
    if not a or not b:
        return 0
    taken = 1 + longest(a[1:], b[1:]) if a[0] is not None and a[0] == b[0] else 0
    return max(taken, longest(a[1:], b), longest(a, b[1:]))


@given(KEYS, KEYS)
def test_an_alignment_is_common_increasing_and_longest(a, b):
    pairs = align(a, b)
    assert all(a[i] is not None and a[i] == b[j] for i, j in pairs)
    assert all(x[0] < y[0] and x[1] < y[1] for x, y in pairwise(pairs))
    assert len(pairs) == longest(a, b)


def read(package) -> Manifest:
    return parse((package / "manifest.json").read_bytes())


def rehashed(manifest: Manifest, module: str) -> Manifest:
    changed = Module(manifest.modules[module].source, "0" * 64)
    return replace(manifest, modules={**manifest.modules, module: changed})


def test_a_manifest_has_no_difference_from_itself(package):
    assert diff(read(package), read(package)).identical


def test_a_rebuilt_module_changes_its_ops_and_each_of_their_calls(package):
    manifest = read(package)
    found = diff(manifest, rehashed(manifest, "norm"))
    assert {change.change for change in found.ops} == {"impl"}
    names = {change.op for change in found.ops}
    assert names == {n for n, op in manifest.ops.items() if op.impl.launches[0].module == "norm"}
    calls = sum(call.op in names for p in manifest.programs.values() for call in p.calls)
    assert sum(span.a.stop - span.a.start for span in found.spans) == calls
    assert all(not span.mismatch for span in found.spans)


def test_a_frontier_is_what_goes_in_and_what_comes_out(package):
    manifest = read(package)
    spans = diff(manifest, rehashed(manifest, "norm")).spans
    first = next(span for span in spans if span.program == "decode").a.frontier
    assert [place.name for place in first.reads] == ["work.f32"]
    assert [place.name for place in first.writes] == ["work.f32"]
    assert first.reads != first.writes


def test_a_call_that_is_left_out_is_a_span_of_one_side(package):
    manifest = read(package)
    decode = manifest.programs["decode"]
    shorter = replace(decode, calls=(*decode.calls[:4], *decode.calls[5:]))
    other = replace(manifest, programs={**manifest.programs, "decode": shorter})
    (span,) = diff(manifest, other).spans
    assert (span.a.start, span.a.stop, span.b.start, span.b.stop) == (4, 5, 4, 4)
    assert len(span.mismatch) == 1


def test_neighbours_of_which_only_kernels_changed_are_spans_of_their_own(package):
    manifest = read(package)
    everything = {name: Module(m.source, "0" * 64) for name, m in manifest.modules.items()}
    found = diff(manifest, replace(manifest, modules=everything))
    assert {span.a.stop - span.a.start for span in found.spans} == {1}
    assert len(found.spans) == sum(len(p.calls) for p in manifest.programs.values())
    for name, program in manifest.programs.items():
        starts = [(s.a.start, s.b.start, s.index) for s in found.spans if s.program == name]
        assert starts == [(at, at, at) for at in range(len(program.calls))]


def test_neighbours_of_which_one_is_called_otherwise_are_one_span(package):
    manifest = read(package)
    everything = {name: Module(m.source, "0" * 64) for name, m in manifest.modules.items()}
    decode = manifest.programs["decode"]
    shorter = replace(decode, calls=(*decode.calls[:4], *decode.calls[5:]))
    other = replace(manifest, modules=everything, programs={**manifest.programs, "decode": shorter})
    (span,) = (span for span in diff(manifest, other).spans if span.program == "decode")
    assert (span.a.stop, span.b.stop) == (len(decode.calls), len(decode.calls) - 1)


def test_other_vars_leave_nothing_to_compare(package):
    manifest = read(package)
    more = {n: replace(var, max=var.max + 1) for n, var in manifest.vars.items()}
    found = diff(manifest, replace(manifest, vars=more))
    assert found.apart == ("the vars",)
    assert not found.identical
