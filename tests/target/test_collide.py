"""Models that claim the same checkpoints must be told apart by name."""

import pytest

from bedstone.target.tree import check_tree
from kernel_trees import hardware, write_tree


def record(rows: str, names: str = "") -> str:
    return f"[routing]\nmodel_types = [{rows}]\nmatch_names = [{names}]\n"


ROW = '{ model_type = "a", hidden_size = 64 }'


def faults(tmp_path, one: str, other: str) -> list[str]:
    files = {"base/one/MODEL.toml": one, "base/two/MODEL.toml": other}
    return list(map(str, check_tree(write_tree(tmp_path, hardware("base"), files))))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (record(ROW, '"x"'), record(ROW, '"y"')),
        (record(ROW, '"x", "x y"'), record(ROW, '"y"')),
        (record(ROW), record('{ model_type = "a" }')),
        (record(ROW), record('{ model_type = "a", hidden_size = 65 }')),
        (record(ROW), record('{ model_type = "b", hidden_size = 64 }')),
        (
            record('{ model_type = "a", hidden_size = 64, head_dim = 16 }'),
            record('{ model_type = "a", hidden_size = 64, head_dim = 32 }'),
        ),
        (record(ROW, '"qwen3.8"'), record(ROW, '"qwen3.6"')),
        (record(ROW, '"qwen30"'), record(ROW, '"qwen3"')),
    ],
)
def test_models_that_can_be_told_apart(tmp_path, one, other):
    assert faults(tmp_path, one, other) == []


def test_a_model_that_collides_needs_a_match_name(tmp_path):
    assert faults(tmp_path, record(ROW), record(ROW, '"y"')) == [
        "kernels/base/one/MODEL.toml:3: `routing.match_names`: `one` and `two` claim the same "
        "checkpoints: expected a match name that tells them apart, found none"
    ]


def test_match_names_that_are_part_of_each_other_tell_nothing_apart(tmp_path):
    (fault,) = faults(tmp_path, record(ROW, '"qwen3-coder", "a-qwen3"'), record(ROW, '"Qwen3"'))
    assert fault.startswith(
        "kernels/base/one/MODEL.toml:3: `routing.match_names`: `one` and `two` claim the same "
        "checkpoints, and every match name of `one` (qwen3-coder, a-qwen3) holds one of `two`"
    )


def test_a_fact_only_one_row_names_does_not_tell_them_apart(tmp_path):
    narrower = record('{ model_type = "a", hidden_size = 64, head_dim = 16 }')
    assert len(faults(tmp_path, record(ROW), narrower)) == 2
