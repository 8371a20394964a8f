import pytest

from bedstone.prove.swap.perf import timed_turns
from bedstone.prove.swap.report import document, lines


@pytest.fixture(scope="module")
def steps(timed_proof):
    return {(s.program, s.rows, s.longest): s for s in timed_proof.perf.steps}


def test_each_program_is_timed_where_it_has_most_rows_and_at_the_end(steps, timed_proof):
    programs = {turn.program for turn in timed_proof.turns}
    assert {program for program, _, longest in steps if longest == 4200} == programs
    assert max(rows for program, rows, _ in steps if program == "prefill") == 512
    assert timed_turns(timed_proof.turns, timed_proof.diff).keys() <= set(range(99))


def test_a_slower_span_is_told_from_the_rest_of_the_step(steps):
    for step in steps.values():
        spans = [span.seconds for span in step.spans]
        assert sum(pair.b for pair in spans) > 3 * sum(pair.a for pair in spans)
        assert step.derived > step.seconds.a
    # elsewhere a tenth of a step is what any two runs of it may differ by
    mostly = {key: step for key, step in steps.items() if step.derived > 2 * step.seconds.a}
    assert {("decode", 1, 2), ("decode_chain", 1, 3)} <= mostly.keys()
    assert all(step.seconds.b > step.seconds.a for step in mostly.values())


def test_bytes_are_those_that_a_s_plan_counts(steps, timed_proof):
    decode = steps["decode", 1, 4200]
    (norms,) = (s for s in decode.spans if s.span.a.ops == ("norm(rows=1,width=32)",))
    # a row in, its weight, a row out: float32
    assert norms.nbytes == 3 * 32 * 4
    assert decode.nbytes > steps["decode", 1, 2].nbytes
    assert timed_proof.perf.bandwidth > 1e8


def test_times_are_told_and_kept(timed_proof):
    told = [line for line in lines(timed_proof) if line.startswith("perf: decode, 1 rows at 4200")]
    assert "derived" in told[0]
    assert all(" at least" in line for line in told)
    kept = document(timed_proof, {"a": "A", "b": "B"})["perf"]
    assert len(kept["steps"]) == len(timed_proof.perf.steps)
    assert kept["steps"][0]["spans"][0]["count"] >= 1
