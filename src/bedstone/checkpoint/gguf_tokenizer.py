"""The tokenizer inside a GGUF file: byte-level BPE (`gpt2`) or sentence-piece BPE (`llama`).

A GGUF file keeps vocabulary and merges, and only the *name* of the rule that cuts a text into words
before merging (`tokenizer.ggml.pre`). The rules are a table here; an unknown name is refused, since
a wrong cut gives other tokens without any sign of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from bedstone.checkpoint.fields import FieldRules, Fields, require_fields
from bedstone.checkpoint.gguf import MetadataArray
from bedstone.checkpoint.pieces import SPACE
from bedstone.checkpoint.tokenizer import Tokenizer, library_faults
from bedstone.errors import WeightError

PREFIX = "tokenizer."

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|"
    r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True, slots=True)
class WordRule:
    """How a text is cut into words: each pattern in turn cuts what the one before left.

    `whole_words` takes a word that is in the vocabulary as it is, without merging; `add_bos` holds
    where the file does not say.
    """

    patterns: tuple[str, ...]
    whole_words: bool = False
    add_bos: bool = False
    nfc: bool = False


LLAMA3_RULE = WordRule((LLAMA3,), whole_words=True, add_bos=True)

WORD_RULES = {
    "default": WordRule((r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]")),
    "gpt-2": WordRule((GPT2,)),
    "smollm": WordRule((r"\p{N}", GPT2)),
    "llama-bpe": LLAMA3_RULE,
    "llama3": LLAMA3_RULE,
    "llama-v3": LLAMA3_RULE,
    "qwen2": WordRule((QWEN2,), nfc=True),
    "deepseek-r1-qwen": WordRule((QWEN2,), nfc=True),
    "tekken": WordRule((TEKKEN,), whole_words=True, add_bos=True),
}

UNKNOWN, CONTROL, USER_DEFINED = 2, 3, 4
"""Kinds of tokens that are never merged, by their number in `token_type`."""

RULES = FieldRules(
    used=frozenset(
        {
            "ggml.model", "ggml.pre", "ggml.tokens", "ggml.token_type", "ggml.merges",
            "ggml.scores", "ggml.bos_token_id", "ggml.eos_token_id", "ggml.eot_token_id",
            "ggml.eom_token_id", "ggml.unknown_token_id", "ggml.add_bos_token",
            "ggml.add_eos_token", "ggml.add_space_prefix", "chat_template",
        }
    ),
    inert={
        **dict.fromkeys(
            (
                "ggml.padding_token_id", "ggml.separator_token_id", "ggml.seperator_token_id",
                "ggml.cls_token_id", "ggml.mask_token_id", "ggml.prefix_token_id",
                "ggml.suffix_token_id", "ggml.middle_token_id", "ggml.fim_pre_token_id",
                "ggml.fim_suf_token_id", "ggml.fim_mid_token_id", "ggml.fim_pad_token_id",
                "ggml.fim_rep_token_id", "ggml.fim_sep_token_id", "ggml.token_type_count",
            ),
            "names a token; the vocabulary holds it either way",
        ),
        **dict.fromkeys(
            ("chat_templates", "chat_template.tool_use", "chat_template.rag"),
            "a template for another purpose than chat",
        ),
        "huggingface.json": "the same tokenizer in another form",
        "rwkv.world": "the same tokenizer in another form",
    },
    fixed={"ggml.remove_extra_whitespaces": (False,), "ggml.add_sep_token": (False,)},
)  # fmt: skip


def parse_gguf_tokenizer(
    metadata: Mapping[str, object], where: str, bos: int | None, eos: tuple[int, ...]
) -> Tokenizer:
    """The tokenizer that the metadata of the GGUF file `where` describes.

    Raises `WeightError` where there is none, or its model, word rule or a field is not known.
    """
    own = {k.removeprefix(PREFIX): v for k, v in metadata.items() if k.startswith(PREFIX)}
    fields = Fields(own, f"{where}: tokenizer")
    model = fields.text("ggml.model")
    if model not in BUILDERS:
        known = " or ".join(f"`{name}`" for name in BUILDERS)
        raise WeightError(
            f"`{where}` has tokenizer `{model}`, which is not known: expected {known}"
        )
    require_fields(own, RULES, fields.where)
    with library_faults(f"`{where}` holds no usable tokenizer"):
        return Tokenizer(BUILDERS[model](fields, _read_vocab(fields)), bos, eos)


def _strings(fields: Fields, name: str) -> list[str]:
    value = fields.values.get(name)
    if not isinstance(value, MetadataArray):
        raise WeightError(f"`{fields.where}` lacks the list `{name}`")
    return value.strings()


def _numbers(fields: Fields, name: str, count: int) -> list[float] | None:
    value = fields.values.get(name)
    if value is None:
        return None
    if not isinstance(value, MetadataArray) or value.count != count:
        raise WeightError(f"`{fields.where}`: `{name}` is not a list of {count} numbers")
    numbers: list[float] = value.numbers().tolist()
    return numbers


@dataclass(frozen=True, slots=True)
class _Vocab:
    tokens: list[str]
    ids: dict[str, int]
    kinds: list[float]

    def of_kind(self, *kinds: int) -> list[str]:
        return [token for token, kind in zip(self.tokens, self.kinds, strict=True) if kind in kinds]


def _read_vocab(fields: Fields) -> _Vocab:
    tokens = _strings(fields, "ggml.tokens")
    ids = {token: token_id for token_id, token in enumerate(tokens)}
    if len(ids) < len(tokens):
        raise WeightError(f"`{fields.where}`: `ggml.tokens` holds a token twice")
    kinds = _numbers(fields, "ggml.token_type", len(tokens)) or [1] * len(tokens)
    return _Vocab(tokens, ids, kinds)


def _byte_level(fields: Fields, vocab: _Vocab) -> Backend:
    name = fields.text("ggml.pre", "default")
    rule = WORD_RULES.get(name)
    if rule is None:
        known = ", ".join(f"`{known}`" for known in WORD_RULES)
        raise WeightError(
            f"field `tokenizer.ggml.pre` of `{fields.where}` is `{name}`, which is not known: "
            f"expected one of {known}"
        )
    merges = [_pair(merge, fields) for merge in _strings(fields, "ggml.merges")]
    backend = Backend(models.BPE(vocab.ids, merges, ignore_merges=rule.whole_words))
    if rule.nfc:
        backend.normalizer = normalizers.NFC()
    cuts = [pre_tokenizers.Split(Regex(p), "isolated") for p in rule.patterns]
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.pre_tokenizer = pre_tokenizers.Sequence([*cuts, letters])
    backend.decoder = decoders.ByteLevel()
    return _finished(backend, fields, vocab, add_bos=rule.add_bos)


def _pair(merge: str, fields: Fields) -> tuple[str, str]:
    left, space, right = merge.partition(" ")
    if not (left and space and right):
        raise WeightError(f"`{fields.where}`: merge {merge!r} is not two tokens")
    return left, right


def _sentence_piece(fields: Fields, vocab: _Vocab) -> Backend:
    scores = _numbers(fields, "ggml.scores", len(vocab.tokens))
    if scores is None:
        raise WeightError(f"`{fields.where}` lacks the list `ggml.scores`")
    backend = Backend(
        models.BPE(
            vocab.ids,
            merges_by_score(vocab.ids, scores),
            unk_token=_token(fields, vocab, "unknown"),
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    prefix = fields.flag("ggml.add_space_prefix", default=True)
    spaces = normalizers.Replace(" ", SPACE)
    lead = [normalizers.Prepend(SPACE)] if prefix else []
    backend.normalizer = normalizers.Sequence([*lead, spaces])
    strip = [decoders.Strip(" ", 1, 0)] if prefix else []
    steps = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
    backend.decoder = decoders.Sequence(steps)
    return _finished(backend, fields, vocab, add_bos=True)


def merges_by_score(ids: Mapping[str, int], scores: list[float]) -> list[tuple[str, str]]:
    """The merges a scored vocabulary stands for, best first.

    Any two tokens that make a third may merge, and the third's score says how early; among the ways
    to make one token the longest left part comes first.
    """
    found = []
    for token, token_id in ids.items():
        for cut in range(1, len(token)):
            left, right = token[:cut], token[cut:]
            if left in ids and right in ids:
                found.append((-scores[token_id], -cut, left, right))
    found.sort(key=lambda merge: merge[:2])
    return [(left, right) for _, _, left, right in found]


def _finished(backend: Backend, fields: Fields, vocab: _Vocab, *, add_bos: bool) -> Backend:
    """Set the tokens that are never merged, and what goes around a prompt."""
    control = vocab.of_kind(UNKNOWN, CONTROL)
    backend.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in control])
    user = vocab.of_kind(USER_DEFINED)
    backend.add_tokens([AddedToken(t, normalized=False) for t in user])
    first = (
        _around(fields, vocab, "bos") if fields.flag("ggml.add_bos_token", default=add_bos) else []
    )
    last = _around(fields, vocab, "eos") if fields.flag("ggml.add_eos_token", default=False) else []
    if first or last:
        backend.post_processor = processors.TemplateProcessing(
            single=[*first, "$A", *last],
            special_tokens=[(token, vocab.ids[token]) for token in {*first, *last}],
        )
    return backend


def _around(fields: Fields, vocab: _Vocab, name: str) -> list[str]:
    """The token of that role, where there is one."""
    token = _token(fields, vocab, name)
    return [] if token is None else [token]


def _token(fields: Fields, vocab: _Vocab, name: str) -> str | None:
    key = f"ggml.{name}_token_id"
    token_id = fields.index(key)
    if token_id is None:
        return None
    if token_id >= len(vocab.tokens):
        raise WeightError(
            f"field `{key}` of `{fields.where}` is {token_id}, there are {len(vocab.tokens)} tokens"
        )
    return vocab.tokens[token_id]


BUILDERS = {"gpt2": _byte_level, "llama": _sentence_piece}
