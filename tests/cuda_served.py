"""The model of `served_toy`, its kernels as Python functions on the fake driver."""

import hashlib

from bedstone.runtime.load import Parts
from cuda_fake import CUBIN, Function, number, words
from served_toy import served_manifest

MODULE = CUBIN + b" served"


def served_code(token_bytes):
    """What the module holds."""

    def store(args, grid, _block):
        token, slot, table, error = map(number, args)
        for row in range(grid[0]):
            at = int(words(slot, row + 1, "<i4")[row])
            words(table + token_bytes * at, 1, "<i8")[0] = words(token, row + 1, "<i4")[row]
        words(error, 1, "<i4")[0] = 0

    def fold(args, grid, _block):
        token, line, sums, rows = map(number, args)
        for group in range(grid[0]):
            at = int(words(line, group + 1, "<i4")[group])
            tokens = words(token, (group + 1) * rows, "<i4")[group * rows :]
            words(sums + 8 * at, 1, "<i8")[0] += int(tokens.sum())

    def close_step(args, grid, _block):
        table, sums, line, position, tables = map(number, args[:5])
        following, error, token, at, slot = map(number, args[5:10])
        rows, vocab, page, width = map(number, args[10:])
        for group in range(grid[0]):
            last = int(words(position, (group + 1) * rows, "<i4")[-1])
            pages = words(tables + 4 * width * group, width, "<i4").tolist()
            places = [pages[p // page] * page + p % page for p in range(last + 1)]
            held = [int(words(table + token_bytes * place, 1, "<i8")[0]) for place in places]
            own = words(sums + 8 * int(words(line, group + 1, "<i4")[group]), 1, "<i8")
            made = (sum(held) + int(own[0])) % (vocab - 1)
            for target in (following, token):
                words(target, group + 1, "<i4")[group] = made
            words(at, group + 1, "<i4")[group] = last + 1
            inside = last + 1 < width * page
            place = pages[(last + 1) // page] * page + (last + 1) % page if inside else 0
            words(slot, group + 1, "<i4")[group] = place
            if vocab - 1 in held:
                words(error, 1, "<i4")[0] = 1

    code = {
        "store": Function((8, 8, 8, 8), store),
        "fold": Function((8, 8, 8, 4), fold),
        "close_step": Function((8,) * 10 + (4,) * 4, close_step),
    }
    return {MODULE: code}


def served_cuda_parts(folder, **shape) -> Parts:
    """The model as a package for the fake driver."""
    (folder / "served.cubin").write_bytes(MODULE)
    sha256 = hashlib.sha256(MODULE).hexdigest()
    return Parts(served_manifest(sha256, **shape), folder)
