"""The toy model of `runtime_toy`, its kernels as Python functions on the fake driver."""

import hashlib
from dataclasses import replace

import numpy as np

from bedstone.runtime.load import Parts
from cuda_fake import CUBIN, Function, number, words
from runtime_toy import CONTEXT, toy_manifest

MODULE = CUBIN + b" toy"


def _store(args, grid, _block):
    token, slot, table = map(number, args)
    for row in range(grid[0]):
        at = int(words(slot, row + 1, "<i4")[row])
        words(table + 8 * at, 1, "<i8")[0] = words(token, row + 1, "<i4")[row]


def _part(args, grid, _block):
    table, position, pages, parts, rows, page = map(number, args)
    last = int(words(position, rows, "<i4")[-1])
    for block in range(grid[0]):
        total = 0
        for at in range(block, last + 1, grid[0]):
            line = int(words(pages, at // page + 1, "<i4")[-1]) * page + at % page
            total += int(words(table + 8 * line, 1, "<i8")[0])
        words(parts + 8 * block, 1, "<i8")[0] = total


def _close(args, _grid, _block):
    parts, position, pages, following, error, token, at, slot = map(number, args[:8])
    rows, vocab, page, context, count = map(number, args[8:])
    made = int(words(parts, count, "<i8").sum()) % vocab
    next_at = int(words(position, rows, "<i4")[-1]) + 1
    for target, value in ((following, made), (token, made), (at, next_at)):
        words(target, 1, "<i4")[0] = value
    words(error, 1, "<i4")[0] = made == vocab - 1
    if next_at < context:
        line = int(words(pages, next_at // page + 1, "<i4")[-1]) * page + next_at % page
        words(slot, 1, "<i4")[0] = line


def toy_code():
    """What the toy's module holds."""
    return {
        "store": Function((8, 8, 8), _store),
        "part": Function((8, 8, 8, 8, 4, 4), _part),
        "close_step": Function((8,) * 8 + (4,) * 5, _close),
    }


def toy_cuda_parts(folder, **more) -> Parts:
    """The toy as a package for the fake driver; `more` changes its manifest."""
    (folder / "toy.cubin").write_bytes(MODULE)
    manifest = toy_manifest(hashlib.sha256(MODULE).hexdigest())
    return Parts(replace(manifest, **more), folder)


def kv(session):
    """The paged state's tokens."""
    return session.region("kv").view(np.int64)[:CONTEXT]
