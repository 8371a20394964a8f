"""Tokenizer and chat template of a checkpoint, from the files of a directory or from a GGUF header.

Only this module and those it imports need `tokenizers` and `jinja2`; a checkpoint loads it when it
is first asked for either.
"""

from pathlib import Path

from bedstone.checkpoint.chat import ChatTemplate
from bedstone.checkpoint.config import ModelConfig
from bedstone.checkpoint.gguf import GgufFile
from bedstone.checkpoint.gguf_tokenizer import parse_gguf_tokenizer
from bedstone.checkpoint.json_text import read_object, read_text
from bedstone.checkpoint.tokenizer import Tokenizer, read_tokenizer_json
from bedstone.errors import WeightError

VOCABULARY, SETTINGS, TEMPLATE = "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"
TOKEN_NAMES = ("bos_token", "eos_token", "unk_token", "pad_token")


def read_tokenizer(source: Path | GgufFile, config: ModelConfig) -> Tokenizer:
    """The tokenizer of a directory or of a GGUF file.

    Raises `WeightError` where a directory has no `tokenizer.json`.
    """
    if isinstance(source, GgufFile):
        where = str(source.weights.path)
        return parse_gguf_tokenizer(source.metadata, where, config.bos, config.eos)
    path = source / VOCABULARY
    if not path.exists():
        raise WeightError(f"`{source}` has no `{VOCABULARY}`: other forms are not read")
    return read_tokenizer_json(path, config.bos, config.eos)


def read_template(source: Path | GgufFile, tokenizer: Tokenizer) -> ChatTemplate | None:
    """The chat template of a directory (its own file, else a tokenizer setting) or a GGUF file."""
    if isinstance(source, GgufFile):
        text = source.metadata.get("tokenizer.chat_template")
        return ChatTemplate(text, _spelled(tokenizer)) if isinstance(text, str) else None
    settings = read_object(source / SETTINGS) if (source / SETTINGS).exists() else {}
    named = {name: text for name in TOKEN_NAMES if (text := _token_text(settings.get(name)))}
    tokens = {**_spelled(tokenizer), **named}
    if (source / TEMPLATE).exists():
        return ChatTemplate(_decoded(source / TEMPLATE), tokens)
    default = _default_template(settings.get("chat_template"))
    return None if default is None else ChatTemplate(default, tokens)


def _spelled(tokenizer: Tokenizer) -> dict[str, str]:
    """`bos_token` and `eos_token` as the vocabulary spells them."""
    ids = {"bos_token": tokenizer.bos, "eos_token": next(iter(tokenizer.eos), None)}
    texts = {name: tokenizer.token(i) for name, i in ids.items() if i is not None}
    return {name: text for name, text in texts.items() if text is not None}


def _token_text(value: object) -> str | None:
    """A token given as text or as an object with its text in `content`."""
    text = value.get("content") if isinstance(value, dict) else value
    return text if isinstance(text, str) else None


def _default_template(value: object) -> str | None:
    """One template, or that named `default` in a list of several."""
    if not isinstance(value, list):
        return value if isinstance(value, str) else None
    named = {t.get("name"): t.get("template") for t in value if isinstance(t, dict)}
    source = named.get("default")
    return source if isinstance(source, str) else None


def _decoded(path: Path) -> str:
    try:
        return read_text(path).decode()
    except UnicodeDecodeError as error:
        raise WeightError(f"`{path}` is not UTF-8") from error
