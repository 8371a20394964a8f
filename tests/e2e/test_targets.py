"""Hardware sets end to end: a CPU without a feature runs a lesser set, and says the same."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bedstone.checkpoint.reference import open_checkpoint
from bedstone.errors import TargetError
from bedstone.runtime.generate import Generator
from bedstone.runtime.load import load
from bedstone.spec.package import TARGET, parse_target
from bedstone.target.cpu import runnable
from bedstone.target.features import read_features
from bedstone.target.hardware import read_sets
from command_line import bedstone
from packages import compiled
from smollm2 import REFERENCE

pytestmark = pytest.mark.slow

READERS = (
    "bedstone.build.request.read_features",
    "bedstone.build.route.read_features",
    "bedstone.runtime.cpu.device.read_features",
)
SETS, HERE = read_sets(), read_features()
ABLE = runnable(SETS, HERE)
LESSER = next((name for name in ABLE[1:] if "avx512f" not in SETS[name].features), "")
"""The best set of a CPU like this one without AVX-512."""
TOKENS = 48

needs_two_sets = pytest.mark.skipif(not LESSER, reason="this CPU runs one set only")


@pytest.fixture
def mask(monkeypatch):
    """Hide what the lesser set does without from everything that asks for features."""

    def hide() -> None:
        beyond = SETS[ABLE[0]].features - SETS[LESSER].features
        for reader in READERS:
            monkeypatch.setattr(reader, lambda: HERE - beyond)

    return hide


def question() -> list[int]:
    opened = open_checkpoint(REFERENCE)
    messages = [{"role": "user", "content": "Why is the sky blue?"}]
    text = opened.chat_template.render(messages, now=datetime(2026, 1, 1, tzinfo=UTC))
    ids = opened.tokenizer.encode(text, special=True)
    opened.close()
    return ids


def tokens(out: Path, cache: Path) -> tuple[str, list[int]]:
    package = compiled(REFERENCE, out, cache, numerics="precise")
    with load(package.path, cache=cache, tokens=128) as session:
        return package.lock.target, list(Generator(session).generate(question(), TOKENS))


@needs_two_sets
def test_a_cpu_without_a_feature_runs_a_lesser_set_and_says_the_same(tmp_path, cache, mask):
    best, whole = tokens(tmp_path / "best", cache)
    mask()
    masked, same = tokens(tmp_path / "masked", cache)
    assert (best, masked) == (ABLE[0], LESSER)
    assert same == whole


@needs_two_sets
def test_the_command_picks_the_set_too(monkeypatch, cache, mask):
    monkeypatch.setenv("BEDSTONE_CACHE", str(cache))
    best, whole = text_of_a_run()
    mask()
    masked, same = text_of_a_run()
    assert (best, masked) == (ABLE[0], LESSER)
    assert whole
    assert same == whole


def text_of_a_run() -> tuple[str, str]:
    """The hardware set that `bedstone run` takes, and what the model says there."""
    ended = bedstone(
        "run", REFERENCE, "--prompt", "Hi", "--max-tokens", "12", "--numerics", "precise", "--json"
    )
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    target = parse_target((Path(told["package"]) / TARGET).read_bytes(), "")
    return target.hardware, told["text"]


@needs_two_sets
def test_a_package_for_more_than_the_machine_has_is_refused(tmp_path, cache, mask):
    package = compiled(REFERENCE, tmp_path / "package", cache, numerics="precise")
    mask()
    with pytest.raises(TargetError, match="was compiled for CPU features this machine lacks"):
        load(package.path, cache=cache, tokens=64)


def test_a_package_says_what_it_is_for_and_what_was_found(tmp_path, cache):
    package = compiled(REFERENCE, tmp_path / "package", cache, target="cpu-generic/smollm2")
    target = parse_target((package.path / TARGET).read_bytes(), TARGET)
    assert (target.hardware, target.model, target.borrowed) == ("cpu-generic", "smollm2", False)
    assert {fact.sha256 for fact in target.modules.values()} == set(package.lock.modules.values())
    assert {fact.form for fact in target.modules.values()} == {"shared_object"}
    assert target.found.keys() > {"argmax", "norm_q", "rope_table"}
    assert set(target.found.values()) == set(target.modules)
    assert target.policy.sampling.non_thinking.temperature == 0.2
