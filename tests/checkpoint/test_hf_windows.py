"""Which layers of a family see a window of the rows before them."""

import pytest

from bedstone.checkpoint.fields import Fields
from bedstone.checkpoint.hf_windows import parse_windows
from bedstone.errors import WeightError

ON = {"use_sliding_window": True, "sliding_window": 8}
FULL, SLIDING = "full_attention", "sliding_attention"


def parse(rule, **changes):
    return parse_windows(Fields({"num_hidden_layers": 4, **changes}, "config.json"), rule)


@pytest.mark.parametrize(
    ("rule", "changes", "window"),
    [
        ("none", {"sliding_window": 8}, None),
        ("all", {}, 4096),
        ("all", {"sliding_window": None}, None),
        ("all", {"sliding_window": 8}, 8),
        ("switch", {"sliding_window": 8}, None),
        ("switch", ON, 8),
        ("switch", {"use_sliding_window": True}, 4096),
        ("late", {"sliding_window": 8}, None),
        ("late", {"sliding_window": 0, "use_sliding_window": False}, None),
        ("late", ON | {"max_window_layers": 4}, None),
        ("late", ON | {"max_window_layers": 0}, 8),
        ("late", ON | {"layer_types": [SLIDING] * 4}, 8),
        ("late", ON | {"layer_types": [FULL] * 4}, None),
        ("late", ON | {"sliding_window": None}, None),
        ("alternate", ON | {"max_window_layers": 0}, None),
        ("pattern", {"sliding_window": None}, None),
        ("pattern", {"sliding_window": 8, "sliding_window_pattern": 6}, 8),
    ],
)
def test_layers_that_are_alike_have_one_window(rule, changes, window):
    assert parse(rule, **changes) == (window, ())


@pytest.mark.parametrize(
    ("rule", "changes", "sliding"),
    [
        ("late", ON | {"max_window_layers": 1}, (1, 2, 3)),
        ("late", ON | {"layer_types": [SLIDING, FULL, FULL, SLIDING]}, (0, 3)),
        ("alternate", ON, (0, 2)),
        ("alternate", ON | {"max_window_layers": 2}, (0,)),
        ("pattern", {"sliding_window": 8, "sliding_window_pattern": 3}, (0, 1, 3)),
        ("pattern", {"sliding_window": 8, "_sliding_window_pattern": 2}, (0, 2)),
        ("pattern", {"sliding_window": 8, "layer_types": [FULL, SLIDING, FULL, FULL]}, (1,)),
    ],
)
def test_layers_may_differ(rule, changes, sliding):
    kinds = tuple("sliding" if layer in sliding else "full" for layer in range(4))
    assert parse(rule, **changes) == (8, kinds)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"layer_types": [SLIDING] * 4},
            "`layer_types` .* sliding layers, but their window is off",
        ),
        (ON | {"layer_types": 3}, "`layer_types` of `config.json` is 3, expected a list of"),
        (ON | {"layer_types": [FULL, "linear"]}, "expected a list of `full_attention`"),
        (ON | {"max_window_layers": -1}, "`max_window_layers` of `config.json` is -1"),
        (ON | {"max_window_layers": True}, "`max_window_layers` of `config.json` is True"),
        (ON | {"sliding_window": 0}, "`sliding_window` of `config.json` is 0"),
    ],
)
def test_windows_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(WeightError, match=message):
        parse("late", **changes)
