"""Every shape of call that the protocol knows, rounds among them, driven over the GPU."""

from dataclasses import replace
from pathlib import Path

import pytest

from bedstone.runtime.generate import Generator
from bedstone.runtime.load import load
from bedstone.runtime.together import Together
from bedstone.serve.engine.options import Options
from calls_toy import BROKEN, SHAPES, calls_manifest, follows
from driven import Driven
from gpu_kernels import compiled, package

HERE = Path(__file__).parent
WORDS = "#define FN static __device__\n#define int32_t int\n#define int64_t long long\n"
PROMPTS = [[5, 11, 2, 40, 7, 1, 31, 8, 3, 9, 21], [1], [9, 9, 31, 8, 3], list(range(1, 30))]


@pytest.fixture(scope="module")
def code(arch):
    parts = (HERE.parent / "runtime" / "calls.h", HERE / "calls.cu")
    return compiled("\n".join([WORDS, *(path.read_text() for path in parts)]), arch)


@pytest.fixture
def opened(tmp_path, code):
    """Opens a session of a shape; it is closed in the end."""
    sessions = []

    def make(name, tokens=480):
        manifest = calls_manifest("0" * 64, SHAPES[name])
        parts = package(tmp_path, lambda table: replace(manifest, modules=table), calls=code)
        sessions.append(load(parts, device="cuda", tokens=tokens, sequences=4))
        return sessions[-1]

    yield make
    for session in sessions:
        session.close()


@pytest.mark.parametrize("name", SHAPES)
def test_one_and_several_are_answered_as_the_model_says(opened, name):
    session, folded = opened(name), SHAPES[name].folded
    expected = [follows(prompt, 20, folded=folded) for prompt in PROMPTS]
    assert list(Generator(session).generate(PROMPTS[0], 20)) == expected[0]
    made = [[] for _ in PROMPTS]
    for index, token in Together(session, 4).generate(PROMPTS, 20):
        made[index].append(token)
    assert made == expected


@pytest.mark.parametrize("name", SHAPES)
def test_requests_are_answered_as_each_alone_and_what_was_computed_is_found_again(opened, name):
    served, folded = Driven(opened(name), Options(chunk=6, host_bytes=2**20)), SHAPES[name].folded
    whole = follows(PROMPTS[0], 25, folded=folded)
    for turn in range(3):
        for index, prompt in enumerate(PROMPTS):
            served.submit(f"{turn}.{index}", prompt, 25)
        served.submit(f"{turn}.stop", PROMPTS[0], 25, stop_ids={whole[9 + turn]})
        served.submit(f"{turn}.broken", [3, 4, BROKEN], 5)
        served.finish()
        for index, prompt in enumerate(PROMPTS):
            assert served.tokens[f"{turn}.{index}"] == follows(prompt, 25, folded=folded)
        assert served.tokens[f"{turn}.stop"] == whole[: whole.index(whole[9 + turn])]
        assert "set `error` to 1" in served.ends[f"{turn}.broken"].message
    for again in ("once", "again"):
        served.submit(again, PROMPTS[3], 25)
        served.finish()
        assert served.tokens[again] == follows(PROMPTS[3], 25, folded=folded)
    assert served.ends["again"].cached > 0
    assert served.core.stats().pages_held == 0
    assert bool(served.core.stats().rounds) == bool(SHAPES[name].rounds)
