"""TOML records: what is refused, and that each refusal says where and why."""

import pytest

from bedstone.spec.record import RECORD_BYTES, nearest, parse_record
from bedstone.spec.target import HardwareRecord, KernelRecord, ModelRecord, Preset, Sampling

ROUTING = '[routing]\nmodel_types = [{ model_type = "qwen3" }]\n'


def faults(text: str, kind: type = ModelRecord) -> list[str]:
    found = parse_record(text, kind, "M.toml")
    assert isinstance(found, tuple), found
    return [str(fault) for fault in found]


def model(text: str) -> ModelRecord:
    found = parse_record(ROUTING + text, ModelRecord, "M.toml")
    assert isinstance(found, ModelRecord), found
    return found


def test_an_integer_serves_as_a_float():
    preset = model("[policy.sampling.tools]\ntemperature = 1\n").policy.sampling.tools
    assert preset == Preset(temperature=1.0)
    assert type(preset.temperature) is float


def test_a_float_keeps_all_its_digits():
    assert model("[policy.sampling.tools]\ntop_p = 0.92512345\n").policy.sampling.tools.top_p == (
        0.92512345
    )


def test_a_filter_left_out_is_not_one_turned_off():
    assert model("").policy.sampling.tools.min_p is None
    assert model("[policy.sampling.tools]\nmin_p = 0\n").policy.sampling.tools.min_p == 0.0


def test_a_category_left_out_has_the_defaults_of_the_type():
    assert model("[policy.sampling.tools]\ntop_k = 5\n").policy.sampling == Sampling(
        tools=Preset(top_k=5)
    )


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("top_k = -1", "expected `int` >= 0, found the number -1"),
        ("top_k = 1.0", "expected `int`, found the number 1.0"),
        ("top_k = true", "expected `int`, found true"),
        ("temperature = -0.1", "expected `float` >= 0.0, found the number -0.1"),
        ("temperature = nan", "expected `float` >= 0.0, found the number nan"),
        ("temperature = inf", "expected `float` <= 2.0, found the number inf"),
        ("temperature = false", "expected `float`, found false"),
        ('temperature = "0.7"', 'expected `float`, found the string "0.7"'),
        ("temperature = 1979-05-27", "expected `float`, found a date"),
        ("top_p = 0", "expected `float` > 0.0, found the number 0"),
        ("top_p = 1.5", "expected `float` <= 1.0, found the number 1.5"),
        ("top_k = 99999999999999999999", "expected `int` <= 2147483647, found an integer over 64"),
        ("top_k = [1]", "expected `int`, found an array of 1"),
    ],
)
def test_a_value_of_the_wrong_kind_or_range_is_refused_where_it_stands(line, found):
    (fault,) = faults(f"{ROUTING}[policy.sampling.tools]\n{line}\n")
    key = line.partition(" ")[0]
    assert fault.startswith(f"M.toml:4: `policy.sampling.tools.{key}`: {found}")


def test_every_fault_is_listed_with_its_line():
    text = (
        '[routing]\nmatch_names = [\n  "a",\n  3,\n]\n'
        '[[routing.model_types]]\nmodel_type = "qwen3"\n\n'
        "[[routing.model_types]]\n# a comment\nhidden_sise = 1\n"
        "[policy.behavior]\nthinking_tokens = -1\n"
    )
    assert faults(text) == [
        "M.toml:2: `routing.match_names[1]`: expected `str`, found the number 3",
        "M.toml:11: `routing.model_types[1].hidden_sise`: unknown key; did you mean `hidden_size`?",
        "M.toml:9: `routing.model_types[1]`: expected a key `model_type`, found none",
        "M.toml:13: `policy.behavior.thinking_tokens`: expected `int` >= 0, found the number -1",
    ]


def test_a_behavior_key_after_another_header_is_not_swallowed():
    (fault,) = faults(f"{ROUTING}[policy.sampling.tools]\nthinking_default = true\n")
    assert fault.startswith("M.toml:4: `policy.sampling.tools.thinking_default`: unknown key")
    assert "`temperature`" in fault


def test_a_missing_table_is_named():
    assert faults("") == ["M.toml: expected a key `routing`, found none"]


@pytest.mark.parametrize("text", ["a = ", "a = 1\nb = [1,\n", "[a]\n[a]\n", "a = 1\na = 2\n"])
def test_text_that_is_no_toml_is_one_fault(text):
    (fault,) = faults(text)
    assert fault.startswith("M.toml")
    assert "no TOML" in fault


def test_a_syntax_fault_has_its_line():
    (fault,) = faults("[routing]\nmatch_names = [}\n")
    assert fault.startswith("M.toml:2: no TOML: ")


def test_a_record_is_bounded():
    (fault,) = faults("#" * (RECORD_BYTES + 1))
    assert "at most" in fault


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('[shadow]\n"a.h" = " "\n', '`shadow."a.h"`'),
        ('[expected_absent]\nnorm = ""\n', "`expected_absent.norm`"),
        ("[expected_absent]\nnorm = 1\n", "`expected_absent.norm`"),
        ("[expected_absent]\nmodule.norm = 1\n", "`expected_absent.module`"),
        ('[build]\nflags = "-O3"\n', "`build.flags`"),
        ('[build]\nflags = ["-O3", 3]\n', "`build.flags[1]`"),
    ],
)
def test_a_reason_or_flag_is_a_text_and_not_blank(text, where):
    (fault,) = faults(text, KernelRecord)
    assert fault.startswith(f"M.toml:2: {where}: expected")


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", "a/b"])
def test_a_name_is_also_a_folder(name):
    text = f'[hardware]\nname = "{name}"\nvendor = "cpu"\narch = "x"\n'
    (fault,) = faults(text, HardwareRecord)
    assert fault.startswith("M.toml:2: `hardware.name`: expected")


def test_a_vendor_is_one_of_those_there_are():
    text = '[hardware]\nname = "a"\nvendor = "amd"\narch = "gfx1151"\n'
    (fault,) = faults(text, HardwareRecord)
    assert fault.startswith("M.toml:3: `hardware.vendor`: ")


def test_a_draft_model_needs_what_it_proposes_from():
    text = f'{ROUTING}[policy.dflash]\ndraft_model = "a/b"\n'
    assert faults(text) == [
        "M.toml:3: `policy.dflash`: expected a key `mask_token_id`, found none",
        "M.toml:3: `policy.dflash`: expected a key `layer_ids`, found none",
    ]
    pairing = model(f"{text[len(ROUTING) :]}mask_token_id = 5\nlayer_ids = [1, 9]\n").policy.dflash
    assert pairing is not None
    assert (pairing.gamma, pairing.window, pairing.layer_ids) == (16, 0, (1, 9))


def test_records_are_frozen():
    with pytest.raises(AttributeError):
        model("").policy.behavior.thinking_default = True


@pytest.mark.parametrize(
    ("name", "meant"),
    [("temperatur", "temperature"), ("TOP_K", "top_k"), ("x", None), ("frequency", None)],
)
def test_a_misspelled_name_is_recognized(name, meant):
    assert nearest(name, ["temperature", "top_p", "top_k", "frequency_penalty"]) == meant
