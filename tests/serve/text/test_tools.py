"""Tool calls in an answer's text: the same parts wherever the text is cut."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedstone.serve.text.parts import Arguments, Called, Said, joined
from bedstone.serve.text.tools.hermes import Hermes
from bedstone.serve.text.tools.llama3 import Llama3
from bedstone.serve.text.tools.members import Members
from bedstone.serve.text.tools.qwen3_coder import Qwen3Coder
from bedstone.serve.text.tools.schema import parameter_types
from bedstone.serve.text.tools.table import guessed

BRACES = {"cmd": "mkdir -p test/{a,b", "n": [{"k": 1}]}
TYPES = {
    "properties": {
        "i": {"type": "integer"},
        "x": {"type": "number"},
        "b": {"type": "boolean"},
        "o": {"type": "object"},
        "s": {"type": "string"},
        "u": {"type": ["string", "null"]},
        "day": {"anyOf": [{"$ref": "#/$defs/Day"}]},
        "a": {"type": "integer"},
        "l": {"enum": [1, 2]},
    },
    "$defs": {"Day": {"type": "integer"}},
}
PIECES = st.sampled_from(
    [
        "<tool_call>", "</tool_call>", "<function=", "f>", "</function>", "<parameter=", "s>", "i>",
        "</parameter>", "{", "}", "[", "]", '"', ":", ",", " ", "\n", '"name"', '"f"',
        '"arguments"',
        '{"name": "f", "arguments": {"a": [1, "}"]}}', "text", "\\", "<", "1", "null", ";",
        "<|python_tag|>", "<function=f><parameter=s>", '"parameters"', "é", "\x00",
    ]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=14).map("".join)
READERS = {
    "hermes": Hermes,
    "qwen3_coder": lambda: Qwen3Coder({"f": TYPES}),
    "llama3": lambda: Llama3({"f"}),
}


def read(reader, chunks, *, cut=False):
    parts = [part for chunk in chunks for part in reader.add(chunk)]
    return joined(parts + reader.finish(cut=cut))


def cuts(text, size):
    return [text[at : at + size] for at in range(0, len(text), size)]


def said(parts):
    return "".join(part.text for part in parts if isinstance(part, Said))


def calls(parts):
    """Names and argument texts; a name is told once, before its arguments."""
    found = []
    for part in parts:
        if isinstance(part, Called):
            assert part.index == len(found)
            found.append([part.name, ""])
        elif isinstance(part, Arguments):
            found[part.index][1] += part.text
    return [tuple(each) for each in found]


@pytest.mark.parametrize("kind", READERS)
@settings(max_examples=250)
@given(text=TEXTS, data=st.data(), cut=st.booleans())
def test_any_cut_gives_the_same_parts(kind, text, data, cut):
    at = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    chunks = [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]
    whole = read(READERS[kind](), [text], cut=cut)
    assert read(READERS[kind](), chunks, cut=cut) == whole
    assert read(READERS[kind](), list(text), cut=cut) == whole
    calls(whole)


@pytest.mark.parametrize("kind", READERS)
@given(text=st.text(alphabet=st.characters(exclude_characters="<{"), max_size=40))
def test_text_without_a_call_is_the_text(kind, text):
    assert said(read(READERS[kind](), list(text))) == text


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_g20_braces_and_brackets_in_arguments(size):
    call = {"name": "run", "arguments": BRACES}
    text = f"<tool_call>\n{json.dumps(call)}\n</tool_call>"
    parts = read(Hermes(), cuts(text, size))
    [(name, arguments)] = calls(parts)
    assert (name, json.loads(arguments), said(parts)) == ("run", BRACES, "")


def test_g20_arguments_are_told_as_they_come():
    reader = Hermes()
    reader.add('<tool_call>{"name":"run","arguments":{"cmd":"mk')
    assert reader.add("dir") == [Arguments(0, "dir")]
    assert reader.calls == 0
    reader.add('"}}')
    assert reader.calls == 1


@pytest.mark.parametrize("call", ['{"name":"on","arguments":{}}', '{"name":"on"}'])
@pytest.mark.parametrize("size", [1, 1000])
def test_g21_a_call_without_arguments_has_an_empty_object(call, size):
    parts = read(Hermes(), cuts(f"<tool_call>{call}</tool_call>", size))
    assert calls(parts) == [("on", "{}")]


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ('{"arguments": {"a": 1}, "name": "f"}', '{"a": 1}'),
        ('{"name": "f", "arguments": "{\\"a\\": 1}"}', '{"a": 1}'),
        ('{"name": "f", "arguments": null}', "{}"),
        ('{"name": "f", "arguments": ""}', "{}"),
        ('{"name": "f", "arguments": [1]}', "[1]"),
        ('{"name": "f", "arguments": {"a": "x\ny"}}', '{"a": "x\\ny"}'),
        ('{"id": 3, "name": "f", "parameters": {"a": 1}, "more": [{}]}', '{"a": 1}'),
    ],
)
def test_hermes_reads_what_models_write(written, told):
    parts = read(Hermes(), list(f"<tool_call>{written}</tool_call>"))
    assert calls(parts) == [("f", told)]


def test_hermes_keeps_text_around_calls_and_no_space_between_them():
    one, two = '{"name": "f", "arguments": {"a": 1}}', '{"name": "g"}'
    text = f"Let me. \n<tool_call>{one}</tool_call>\n<tool_call>{two}\n</tool_call>\n Done."
    parts = read(Hermes(), list(text))
    assert calls(parts) == [("f", '{"a": 1}'), ("g", "{}")]
    assert said(parts) == "Let me.Done."


def test_hermes_reads_calls_that_lie_in_one_tag_or_in_tags_that_none_closes():
    one, two = '{"name": "f", "arguments": {"a": 1}}', '{"name": "g"}'
    for text in (f"<tool_call>{one}{two}</tool_call>", f"<tool_call>{one}\n{two} <tool_call>{one}"):
        parts = read(Hermes(), list(text))
        assert calls(parts)[:2] == [("f", '{"a": 1}'), ("g", "{}")]
        assert said(parts) == ""


@pytest.mark.parametrize(
    "text",
    [
        " <tool_call>hello</tool_call>",
        '<tool_call>{"nam',
        '<tool_call>{"a": 1}</tool_call> x',
        '<tool_call>{"name": 5, "arguments": {}}</tool_call>',
        '<tool_call>{"name": "", "arguments": {}}</tool_call>',
        '<tool_call>{"name": 5, "name": "f"}</tool_call>',
        "<tool",
    ],
)
def test_hermes_what_is_no_call_is_text(text):
    parts = read(Hermes(), list(text))
    assert (said(parts), calls(parts)) == (text, [])


@pytest.mark.parametrize(
    ("broken", "after"),
    [
        ("]}}</tool_call> Sorry.", "Sorry."),
        ("]}} and so on </tool", ""),
        ("[1}}</tool_call>\n", ""),
        ("1}}</tool_c", ""),
    ],
)
def test_hermes_what_breaks_a_call_that_was_told_is_no_text(broken, after):
    reader = Hermes()
    parts = read(reader, list('<tool_call>{"name": "f", "arguments": {"a": ' + broken))
    [(name, arguments)] = calls(parts)
    assert (name, said(parts)) == ("f", after)
    assert arguments.startswith('{"a": ')
    assert reader.calls == (broken == "1}}</tool_c")


def test_a_schema_that_refers_to_itself_says_nothing_of_a_type():
    again = {"$ref": "#/$defs/a"}
    schema = {
        "properties": {"a": again, "b": {"anyOf": [again, {"type": "integer"}]}},
        "$defs": {"a": again},
    }
    assert parameter_types(schema, "a") == {"string"}
    assert parameter_types(schema, "b") == {"integer"}


def test_g23_values_have_the_schemas_type():
    values = {"i": "10", "x": "3.5", "b": "True", "o": '{"k":[1]}', "s": "007", "u": "null"}
    inner = "".join(f"<parameter={k}>{v}</parameter>" for k, v in values.items())
    text = f"<tool_call><function=f>{inner}</function></tool_call>"
    for size in (1, 5, 1000):
        [(name, arguments)] = calls(read(Qwen3Coder({"f": TYPES}), cuts(text, size)))
        assert name == "f"
        assert json.loads(arguments) == {
            "i": 10, "x": 3.5, "b": True, "o": {"k": [1]}, "s": "007", "u": None,
        }  # fmt: skip


@pytest.mark.parametrize(
    ("parameter", "told"),
    [
        ("<parameter=i></parameter>", {}),
        ("<parameter=i>None</parameter>", {}),
        ("<parameter=o>\n\n</parameter>", {}),
        ("<parameter=s></parameter>", {"s": ""}),
        ("<parameter=s>\n\na\n\n</parameter>", {"s": "\na\n"}),
        ('<parameter=s>if a < b:\n  </x> "q"</parameter>', {"s": 'if a < b:\n  </x> "q"'}),
        ("<parameter=day>12</parameter>", {"day": 12}),
        ("<parameter=l>2</parameter>", {"l": 2}),
        ("<parameter=zz>2</parameter>", {"zz": "2"}),
        ("<parameter=i>1</parameter><parameter=i>2</parameter>", {"i": 1}),
        ("<parameter=x>1e999</parameter>", {"x": "1e999"}),
        ("<parameter=i>1</parameter>junk <b>\n<parameter=a>2</parameter>", {"i": 1, "a": 2}),
    ],
)
def test_g23_empty_missing_and_odd_values(parameter, told):
    text = f"<tool_call>\n<function=f>\n{parameter}\n</function>\n</tool_call>"
    for size in (1, 1000):
        [(_, arguments)] = calls(read(Qwen3Coder({"f": TYPES}), cuts(text, size)))
        assert json.loads(arguments) == told


def test_g24_a_value_that_cannot_be_converted_stays_a_string():
    text = "<function=f><parameter=day>2026-01-15</parameter></function>"
    [(_, arguments)] = calls(read(Qwen3Coder({"f": TYPES}), [text]))
    assert json.loads(arguments) == {"day": "2026-01-15"}


def test_g24_a_parameter_ends_at_the_next_tag():
    schemas = {"f": {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}}
    text = "<function=f><parameter=a>1<parameter=b>2</function>"
    [(_, arguments)] = calls(read(Qwen3Coder(schemas), list(text)))
    assert json.loads(arguments) == {"a": 1, "b": 2}


def test_g24_a_cut_call_is_not_whole_and_one_the_model_ended_is():
    text = "<function=f><parameter=a>1"
    reader = Qwen3Coder({"f": TYPES})
    [(_, arguments)] = calls(read(reader, [text], cut=True))
    assert reader.calls == 0
    assert not arguments.endswith("}")
    reader = Qwen3Coder({"f": TYPES})
    assert calls(read(reader, [text])) == [("f", '{"a": 1}')]
    assert reader.calls == 1


def test_qwen3_coder_tells_strings_as_they_come():
    reader = Qwen3Coder({"f": TYPES})
    assert reader.add("<function=f>") == [Called(0, "f")]
    assert reader.add("<parameter=s>\nab") == [Arguments(0, '{"s": "ab')]
    assert reader.add('c"\n') == [Arguments(0, 'c\\"')]
    assert joined(reader.add("</parameter></function>")) == [Arguments(0, '"}')]


@pytest.mark.parametrize(
    "text", ["a <function=", "<tool_call>x", "<function=a b\n>", "<function=>"]
)
def test_qwen3_coder_what_is_no_call_is_text(text):
    parts = read(Qwen3Coder({}), list(text))
    assert (said(parts), calls(parts)) == (text, [])


def test_llama3_reads_calls_of_known_tools_only():
    call = '{"name": "f", "parameters": {"q": "x; y"}}'
    for text in (call, f"<|python_tag|>{call}", f" {call}; {call}"):
        parts = read(Llama3({"f"}), list(text))
        assert set(calls(parts)) == {("f", '{"q": "x; y"}')}
        assert said(parts) == ""
    for text in ('{"name": "g", "parameters": {}}', '{"answer": 42}', f"So: {call}"):
        parts = read(Llama3({"f"}), list(text))
        assert (said(parts), calls(parts)) == (text, [])


@settings(max_examples=200)
@given(
    st.dictionaries(
        st.text(max_size=6),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=8),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
            max_leaves=6,
        ),
        max_size=4,
    ),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_members_of_any_object_come_back(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    members = Members()
    told = {}
    for char in text + "!":
        found, rest = members.add(char)
        for each in found:
            told[each.key] = told.get(each.key, "") + each.text
    assert (members.state, rest) == ("done", "!")
    assert {key: json.loads(each) for key, each in told.items()} == value


@pytest.mark.parametrize(
    ("template", "way"),
    [
        ("{{ tools }} <tool_call>", "hermes"),
        ("{{ tools }} <tool_call>\n<function=x>", "qwen3_coder"),
        ('{{ tools }} {"name": f, "parameters": d}', "llama3"),
        ("<tool_call>", None),
        ("{{ tools }}", None),
    ],
)
def test_a_template_tells_how_its_model_writes_calls(template, way):
    assert guessed(template) == way
