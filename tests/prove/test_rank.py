import pytest

from bedstone.prove.choose import choose
from bedstone.prove.rank import rank
from bedstone.spec.identity import definition_identity, solution_identity
from bedstone.spec.trace import Trace
from definitions import definition, solution, workload
from prove.outcomes import failed, passed

OF = definition()
FAST, SLOW, LAZY = (
    solution(f"def run(x):\n    return x * {n}\n", name=name)
    for n, name in enumerate(("fast", "slow", "lazy"))
)


def trace(name, evaluation, n=16):
    return Trace("double_n", workload(f"w{n}", n=n), name, evaluation)


def test_solutions_are_ranked_by_what_they_solve_and_then_by_speed():
    standings = rank([
        trace("fast", passed(1.0), 16),
        trace("fast", passed(1.0), 32),
        trace("slow", passed(2.0), 16),
        trace("slow", passed(0.5), 32),
        trace("lazy", passed(0.1), 16),
        trace("lazy", failed("INCORRECT_SHAPE"), 32),
        Trace("double_n", workload("w99", n=99)),
    ])  # fmt: skip
    assert [(s.solution, s.solved, s.workloads, s.wins) for s in standings] == [
        ("fast", 2, 2, 0),
        ("slow", 2, 2, 1),
        ("lazy", 1, 2, 1),
    ]
    assert [s.speedup for s in standings] == pytest.approx([4.0, 4.0, 40.0])
    assert standings[2].failures == ("INCORRECT_SHAPE",)


def test_one_devices_times_say_nothing_of_anothers():
    standings = rank([
        trace("fast", passed(1.0, hardware="H200")),
        trace("slow", passed(2.0, hardware="H200")),
        trace("fast", passed(3.0, hardware="cpu")),
        trace("slow", passed(2.0, hardware="cpu")),
    ])  # fmt: skip
    assert [(s.hardware, s.solution) for s in standings] == [
        ("H200", "fast"),
        ("H200", "slow"),
        ("cpu", "slow"),
        ("cpu", "fast"),
    ]


def test_a_fault_that_was_mended_is_forgotten():
    old, new = failed(at="2026-01-01T00:00:00"), passed(1.0, at="2026-01-02T00:00:00")
    for order in ([old, new], [new, old]):
        standing = rank([trace("fast", evaluation) for evaluation in order])[0]
        assert (standing.solved, standing.failures) == (1, ())


def test_f10_a_time_of_zero_wins_nothing():
    standings = rank([trace("lazy", passed(0.0)), trace("fast", passed(1.0))])
    assert [(s.solution, s.speedup, s.wins, s.impossible) for s in standings] == [
        ("fast", 4.0, 1, 0),
        ("lazy", None, 0, 1),
    ]


def chosen(traces, axes=None, hardware="H200", policy="exact", of=OF):
    choice = choose(of, [FAST, SLOW, LAZY], traces, axes or {"n": 16}, hardware, policy)
    name = None if choice.solution is None else choice.solution.name
    return name, {reason.solution: reason.why for reason in choice.others}


def test_the_fastest_that_passed_is_chosen_and_every_other_has_a_reason():
    assert chosen([
        trace("fast", passed(1.0)),
        trace("slow", passed(2.0)),
        trace("lazy", failed("REWARD_HACK")),
    ]) == ("fast", {"slow": "slower: 2 ms, not 1", "lazy": "failed: REWARD_HACK"})  # fmt: skip


def test_nothing_is_chosen_without_a_reason():
    traces = [
        trace("fast", passed(1.0, hardware="B200")),
        trace("slow", passed(1.0), n=32),
    ]
    assert chosen(traces) == (
        None,
        {
            "fast": "measured on B200, not on H200",
            "slow": "measured at other sizes: n=32",
            "lazy": "never measured",
        },
    )


def test_the_nearest_sizes_may_do():
    traces = [trace("fast", passed(1.0), 4), trace("slow", passed(2.0), 20)]
    choice = choose(OF, [FAST, SLOW], traces, {"n": 16}, "H200", "nearest")
    assert (choice.solution.name, choice.measured_at) == ("fast", {"n": 4})
    far = [trace("fast", passed(1.0), 4), trace("fast", passed(9.0), 17), traces[1]]
    assert choose(OF, [FAST, SLOW], far, {"n": 16}, "H200", "nearest").solution is SLOW


def test_one_failure_at_these_sizes_is_enough():
    one = Trace("double_n", workload("a", n=16), "fast", passed(1.0))
    two = Trace("double_n", workload("b", n=16), "fast", failed("INCORRECT_SHAPE"))
    assert chosen([one, two])[1]["fast"] == "failed: INCORRECT_SHAPE"


def test_what_changed_since_it_was_measured_does_not_count():
    record = {"definition": definition_identity(OF), "solution": solution_identity(FAST)}
    assert chosen([trace("fast", passed(1.0, **record))])[0] == "fast"
    for changed in ({"definition": "0" * 64}, {"solution": "0" * 64}):
        found = chosen([trace("fast", passed(1.0, **record | changed))])
        assert found[0] is None
        assert found[1]["fast"] == "changed since it was measured"
