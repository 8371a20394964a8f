from bedstone.spec.dialect.workload import emit_workload, parse_workload


def test_a_tolerance_is_written_back_as_it_was_read():
    value = {
        "uuid": "w",
        "axes": {"n": 4},
        "inputs": {},
        "tolerance": {"max_atol": 0.5, "max_rtol": 0.1, "max_spread": 0.2, "max_steps": 2},
    }
    reading = parse_workload(value)
    assert reading.findings == ()
    assert reading.value.tolerance.steps == 2
    assert emit_workload(reading.value, "sol").value == value


def test_steps_that_are_none_are_not_written():
    value = {"uuid": "w", "axes": {}, "inputs": {}, "tolerance": {"max_rtol": 0.1}}
    assert emit_workload(parse_workload(value).value, "sol").value == value
