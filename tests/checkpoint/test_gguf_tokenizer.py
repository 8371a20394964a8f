"""Tokenizers that a GGUF file's vocabulary makes: as `transformers` has them, or refused."""

import pytest
import tokenizers
import transformers
from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

from bedstone.checkpoint.gguf_tokenizer import WORD_RULES, merges_by_score
from bedstone.checkpoint.pieces import BYTE_OF
from bedstone.checkpoint.reference import open_checkpoint
from bedstone.checkpoint.tokenizer import Tokenizer
from bedstone.errors import WeightError
from checkpoint_files import GGUF_FIELDS, write_gguf
from texts import TEXTS


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
