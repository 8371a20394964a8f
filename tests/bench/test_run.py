"""`bedstone bench` as a whole, on this machine's cores and tiny models."""

import json

import numpy as np
import pytest

from bedstone.bench import drive, run
from bedstone.bench.cases import Grid
from bedstone.bench.rates import Rates
from bedstone.bench.record import RANDOM_CACHE, RANDOM_WEIGHTS
from bedstone.bench.run import Wish, bench
from bedstone.build.compile import compile_checkpoint
from bedstone.build.request import Options, Request
from bedstone.checkpoint.drawn import drawn_checkpoint
from bedstone.errors import CallerError, WeightError
from bedstone.runtime.session import Session
from command_line import bedstone
from letters import write_tokenizer
from packages import compiled
from tiny_models import write_tiny

FAST = ("--random", "--repeats", "2", "--threads", "1")


@pytest.fixture(autouse=True)
def known_machine(monkeypatch):
    monkeypatch.setattr(run, "measure_machine", lambda _: Rates(1e10))


@pytest.fixture
def package(toys, tmp_path):
    """Compiles a config into a package."""

    def made(name="toy", held="bf16", **options):
        request = Request(drawn_checkpoint(name, held), Options(**options), toys)
        return compile_checkpoint(request, tmp_path / f"{name}-{held}", lambda _: None)

    return made


def timed(*arguments):
    ended = bedstone("bench", *arguments, "--json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


@pytest.mark.slow
@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("config", ["toy", "recurrent", "latent"])
def test_a_config_is_timed_over_the_whole_grid(config, tmp_path):
    plot = tmp_path / "roof.svg"
    found = timed(
        "--config", config, *FAST, "--batch", "1,3", "--context", "8,200", "--prefill", "1,70",
        "--numerics", "precise", "--plot", plot,
    )  # fmt: skip
    assert [(r["kind"], r["batch"], r["context"]) for r in found["results"]] == [
        ("decode", 1, 8),
        ("decode", 1, 200),
        ("decode", 3, 8),
        ("decode", 3, 200),
        ("prefill", 1, 1),
        ("prefill", 1, 70),
    ]
    for each in found["results"]:
        seconds = each["seconds"]
        assert 0 < seconds["least"] <= seconds["median"] <= seconds["most"] < 5
        assert seconds["count"] == 2
        assert each["bytes"] == sum(each["traffic"].values()) > 0
        assert each["operations"] > 0
    (ran,) = found["packages"]
    assert ran["weights"] == RANDOM_WEIGHTS
    assert (ran["sequences"], ran["numerics"]) == (3, "precise")
    assert found["cache"] == RANDOM_CACHE
    assert found["process_start_to_first_token_seconds"] > 0
    assert plot.read_text().count("<circle") == 6


@pytest.mark.usefixtures("toys")
def test_a_longer_context_and_more_sequences_cost_more():
    found = timed("--config", "toy", *FAST, "--batch", "1,2", "--context", "16,128")
    one, long, two, _ = (r["traffic"] for r in found["results"])
    assert long["cache"] > 4 * one["cache"]
    assert two["cache"] == pytest.approx(2 * one["cache"], rel=0.01)
    assert two["weights"] < 1.1 * one["weights"]


def test_two_packages_are_timed_in_turns(package, monkeypatch):
    first, second = package(), package(held="q8_0")
    order = []
    sample = drive.Driver.sample

    def noted(self, case, steps):
        order.append(self)
        return sample(self, case, steps)

    monkeypatch.setattr(drive.Driver, "sample", noted)
    found = timed(first.path, "--against", second.path, "--context", "32", "--repeats", "3")
    a, b = order[-2:]
    assert order[-6:] == [a, b] * 3
    assert [ran["checkpoint"] for ran in found["packages"]] == [
        "random:toy/bf16",
        "random:toy/q8_0",
    ]
    assert [r["package"] for r in found["results"]] == [0, 1]
    (against,) = found["against"]
    assert against["times_as_long"]["count"] == 3


def test_pages_hold_random_numbers_before_anything_is_timed(package, monkeypatch):
    seen = []
    decode = drive.Driver.sample

    def looked(self, case, steps):
        if not seen:
            session = self._session
            seen.extend(session.region(name) for name in session.manifest.states)
        return decode(self, case, steps)

    monkeypatch.setattr(drive.Driver, "sample", looked)
    wish = Wish(Grid((1,), (200,)), "cpu", 1, package().path.parent, 1)
    bench([package()], wish, lambda *_: None)
    assert seen
    for held in seen:
        values = held.view(np.float32)
        assert np.isfinite(values).all()
        assert np.count_nonzero(values) > 0.99 * values.size


@pytest.mark.parametrize(("batch", "program"), [(1, "decode_chain"), (3, "decode_many_chain")])
def test_the_steps_timed_are_those_of_so_many_sequences(package, monkeypatch, batch, program):
    started = []
    start = Session.start

    def watched(self, name, *rest, **given):
        started.append((name, given.get("seqs")))
        return start(self, name, *rest, **given)

    monkeypatch.setattr(Session, "start", watched)
    wish = Wish(Grid((batch,), (8,)), "cpu", 1, package().path.parent, 1)
    bench([package(sequences=3)], wish, lambda *_: None)
    assert {each for each in started if each[0].endswith("_chain")} == {(program, batch)}


def test_a_step_whose_logits_are_not_finite_is_not_timed(package, monkeypatch):
    start = Session.start

    class Failed:
        def __init__(self, made):
            self._made = made

        def wait(self):
            tokens, *errors = self._made.wait()
            return (tokens, *(np.ones_like(error) for error in errors))

    monkeypatch.setattr(
        Session,
        "start",
        lambda self, program, times, collect, **given: (
            Failed(start(self, program, times, collect, **given))
            if "chain" in program
            else start(self, program, times, collect, **given)
        ),
    )
    wish = Wish(Grid((1,), (16,)), "cpu", 1, package().path.parent, 1)
    with pytest.raises(WeightError, match="`decode_chain` set `error`"):
        bench([package()], wish, lambda *_: None)


def test_a_package_of_other_weights_is_refused(package):
    made = package()
    lock = made.path / "lock.json"
    lock.write_text(lock.read_text().replace(made.lock.identity, "0" * 64))
    ended = bedstone("bench", made.path, "--context", "16")
    assert ended.code == WeightError.exit_code
    assert "is not the one" in ended.err


def test_a_package_is_timed_where_its_checkpoint_is_now(tmp_path, toys):
    was, now = tmp_path / "was", tmp_path / "now"
    write_tiny("llama", was)
    write_tokenizer(was)
    out = compiled(str(was), tmp_path / "package", toys).path
    was.rename(now)
    short = (out, "--context", "8", "--repeats", "1", "--threads", "1")
    ended = bedstone("bench", *short)
    assert ended.code == CallerError.exit_code
    assert "`--checkpoint` says where it is now" in ended.err
    assert timed(*short, "--against", out, "--checkpoint", now)["packages"][1]["path"] == str(out)


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("x.gguf", "--checkpoint", "y.gguf"), "`--checkpoint` is of a package, `x.gguf` is none"),
        ((), "expected a CHECKPOINT, a PACKAGE or a `--config`"),
        (("x", "--config", "toy", "--random"), "expected a CHECKPOINT"),
        (("--config", "toy"), "a config has no weights"),
        (("x.gguf", "--random"), "`--config` and `--random` go together"),
        (("--config", "none", "--random"), "no config `none`"),
        (("x.gguf", "--format", "q4_0"), "`--format` is of a `--config`"),
        (("--config", "toy", "--random", "--batch", "0"), "`--batch` is `0`"),
        (("--config", "toy", "--random", "--context", "257"), "context 257: the package serves"),
        (("--config", "toy", "--random", "--batch", "65"), "a step decodes 1 to 64"),
    ],
)
def test_what_cannot_be_timed_is_said_in_a_line(arguments, words):
    ended = bedstone("bench", *arguments)
    assert ended.code == CallerError.exit_code
    assert words in ended.err
    assert ended.err.count("\n") == 1


def test_a_picture_that_cannot_be_written_is_said(package, tmp_path):
    nowhere = tmp_path / "none" / "roof.svg"
    ended = bedstone("bench", package().path, "--plot", nowhere)
    assert (ended.code, ended.out) == (CallerError.exit_code, "")
    assert f"`{nowhere}` cannot be written" in ended.err


def test_what_was_measured_is_told_before_a_picture_is_drawn(package):
    ended = bedstone(
        "bench", package().path, "--context", "16", "--repeats", "1", "--plot", "/dev/full"
    )
    assert ended.code == CallerError.exit_code
    assert "toy" in ended.out
    assert ended.err == "bedstone: `/dev/full` cannot be written: No space left on device\n"


@pytest.mark.parametrize(
    ("option", "asked", "made"),
    [("--numerics", "precise", "quantized"), ("--target", "cpu-none", "cpu-")],
)
def test_a_package_is_timed_as_it_was_compiled(package, option, asked, made):
    ended = bedstone("bench", package().path, option, asked)
    assert (ended.code, ended.out) == (CallerError.exit_code, "")
    assert f"was compiled with {option[2:]} `{made}" in ended.err


def test_a_table_is_printed_for_a_person(package):
    out = bedstone("bench", package().path, "--context", "16", "--repeats", "1").out
    for words in (
        "machine  cpu · 10 GB/s",
        "package  toy · random:toy/bf16 · ",
        "decode, batch 1, context 16",
        "process start to first token",
    ):
        assert words in out
