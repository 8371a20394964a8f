"""What `bedstone run` makes of a prompt."""

import pytest

from bedstone.checkpoint.reference import open_checkpoint
from bedstone.cli.run import _prompt_ids
from bedstone.errors import CallerError, WeightError
from checkpoint_files import LLAMA, write_directory
from letters import write_tokenizer


@pytest.fixture
def opened(tmp_path):
    """A model of three tokens beside a tokenizer of many."""
    folder = write_directory(tmp_path / "c", LLAMA)
    write_tokenizer(folder)
    return open_checkpoint(str(folder))


def test_a_token_that_the_model_has_not_is_the_checkpoints_fault(opened):
    token = opened.tokenizer.encode("z", special=False)[0]
    with pytest.raises(WeightError, match=rf"/c` makes token {token} of the prompt, the model has"):
        _prompt_ids(opened, "z", chat=False)
    assert _prompt_ids(opened, "", chat=False) == []


def test_a_chat_wants_a_template(opened):
    with pytest.raises(CallerError, match="has no chat template: use `--raw`"):
        _prompt_ids(opened, "b", chat=True)
