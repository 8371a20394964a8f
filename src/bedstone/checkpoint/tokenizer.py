"""Text to token ids and back, at once or as a stream.

The merging of pieces is the `tokenizers` library's; putting text together is done here over bytes,
so that a stream of ids gives the same text wherever it is cut and never half a character.
"""

import codecs
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from tokenizers import Tokenizer as Backend

from bedstone.checkpoint.json_text import read_text
from bedstone.checkpoint.pieces import parse_decoder
from bedstone.errors import BedstoneError, CallerError, WeightError

ID_LIMIT = 1 << 24
"""Ids stay below this: the library walks from 0 to the highest one when it writes a tokenizer."""

LONG = 2048
"""A text of more characters is encoded without the interpreter's lock, which costs a little."""


class Tokenizer:
    """One model's vocabulary.

    `bos` begins a text where the model wants that, any of `eos` ends one; None and empty where the
    model has none. An id the vocabulary lacks, such as a padding row of the embedding, decodes to
    nothing.
    """

    def __init__(self, backend: Backend, bos: int | None, eos: tuple[int, ...]) -> None:
        self.bos = bos
        self.eos = eos
        self._backend = backend
        # What a file says of these is about training; a prompt is taken whole and as it is.
        backend.no_truncation()
        backend.no_padding()
        state = None if backend.decoder is None else backend.decoder.__getstate__()
        self._kind = parse_decoder(state)
        self._added = backend.get_added_tokens_decoder()
        self._pieces: dict[int, bytes] = {}
        self._modes: dict[bool, Backend] = {}
        self._lock = Lock()

    @property
    def size(self) -> int:
        """How many tokens there are, added ones included."""
        return self._backend.get_vocab_size(with_added_tokens=True)

    @property
    def strips_first_space(self) -> bool:
        """Whether the space a text begins with is the encoder's own."""
        return self._kind.strip_first

    def encode(self, text: str, *, special: bool, whole: bool = False) -> list[int]:
        """The ids of `text`.

        With `special`, special tokens spelled out in the text are read as such; a chat template's
        output needs it, a user's text must not have it. With `whole`, the ids come as a prompt of
        their own: what the model puts around one (its `bos`, mostly) is added.

        Raises `CallerError` where the text holds half of a surrogate pair.
        """
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise CallerError("the text holds a lone surrogate: expected valid Unicode") from error
        with library_faults("the tokenizer cannot encode the text"):
            backend = self._mode(special=special)
            if len(text) > LONG:
                return backend.encode_batch_fast([text], add_special_tokens=whole)[0].ids
            return backend.encode(text, add_special_tokens=whole).ids

    def decode(self, ids: Iterable[int], *, special: bool = False) -> str:
        """The text of `ids`; special tokens are left out unless `special`."""
        stream = Detokenizer(self, special=special)
        return stream.add(ids) + stream.finish()

    def id_of(self, token: str) -> int | None:
        """The id of a token, where there is one."""
        return self._backend.token_to_id(token)

    def token(self, token_id: int) -> str | None:
        """A token as the vocabulary spells it."""
        return self._backend.id_to_token(token_id) if 0 <= token_id < 1 << 32 else None

    def is_special(self, token_id: int) -> bool:
        """Whether the token steers the model rather than standing for text."""
        added = self._added.get(token_id)
        return added is not None and added.special

    def piece(self, token_id: int) -> bytes:
        """The bytes a token stands for, perhaps a part of a character."""
        piece = self._pieces.get(token_id)
        if piece is None:
            piece = self._pieces[token_id] = self._read_piece(token_id)
        return piece

    def to_json(self) -> str:
        """The whole tokenizer as the text of a `tokenizer.json`.

        Raises `WeightError` where an id is out of range.
        """
        highest = max(self._backend.get_vocab(with_added_tokens=True).values(), default=0)
        if highest >= ID_LIMIT:
            raise WeightError(f"a token has id {highest}, expected less than {ID_LIMIT}")
        return self._backend.to_str()

    def _mode(self, *, special: bool) -> Backend:
        """The backend that reads special tokens, or that takes them for text.

        Each is set once, so that threads may share it; only who asks for both pays for a second.
        """
        with self._lock:
            if special not in self._modes:
                first = not self._modes
                backend = self._backend if first else Backend.from_str(self.to_json())
                backend.encode_special_tokens = not special
                self._modes[special] = backend
            return self._modes[special]

    def _read_piece(self, token_id: int) -> bytes:
        token = self.token(token_id)
        if token is None:
            return b""
        return token.encode() if token_id in self._added else self._kind.piece(token)


class Detokenizer:
    """A stream of ids to a stream of text: whole characters, as soon as they are whole.

    Bytes that are no UTF-8 become U+FFFD. The texts of `add` and the closing `finish`, joined,
    do not depend on how the ids were dealt out. Special tokens are left out unless `special`, or
    the token is one to `keep`.
    """

    def __init__(
        self, tokenizer: Tokenizer, *, special: bool = False, keep: Collection[int] = ()
    ) -> None:
        self._tokenizer = tokenizer
        self._special = special
        self._keep = keep
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._at_start = tokenizer.strips_first_space

    def add(self, ids: Iterable[int]) -> str:
        """The text that these ids complete."""
        pieces = [
            self._tokenizer.piece(token_id)
            for token_id in ids
            if self._special or token_id in self._keep or not self._tokenizer.is_special(token_id)
        ]
        return self._begun(self._decoder.decode(b"".join(pieces)))

    def finish(self) -> str:
        """What is left when no id follows: U+FFFD for a character that stayed half."""
        return self._begun(self._decoder.decode(b"", final=True))

    def _begun(self, text: str) -> str:
        if self._at_start and text:
            self._at_start = False
            return text.removeprefix(" ")
        return text


def read_tokenizer_json(path: Path, bos: int | None, eos: tuple[int, ...]) -> Tokenizer:
    """The tokenizer in the `tokenizer.json` at `path`.

    Raises `WeightError` where the library cannot make a tokenizer of it.
    """
    with library_faults(f"`{path}` is not a usable tokenizer"):
        return Tokenizer(Backend.from_buffer(read_text(path)), bos, eos)


def parse_tokenizer_json(text: str, bos: int | None, eos: tuple[int, ...]) -> Tokenizer:
    """The tokenizer that `Tokenizer.to_json` wrote.

    Raises `WeightError` where the library cannot make a tokenizer of it.
    """
    with library_faults("the text is no tokenizer"):
        return Tokenizer(Backend.from_str(text), bos, eos)


@contextmanager
def library_faults(what: str) -> Iterator[None]:
    """Turn whatever the `tokenizers` library fails with into a `WeightError` that begins `what`.

    It raises nothing narrower than `Exception`, and where its Rust code panics something that is
    not even that.
    """
    try:
        yield
    except (BedstoneError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise WeightError(f"{what}: {error}") from error
