"""Functions that references call, in plain PyTorch: each is written into those that need it."""

import re
from textwrap import dedent

from bedstone.library.mathematics.makers import MAKERS

_TEXTS = (
    """
    def silu(x):
        return x / (1 + torch.exp(-x))
    """,
    """
    def gelu_tanh(x):
        inner = (2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + torch.tanh(inner))
    """,
    """
    def sigmoid(x):
        return 1 / (1 + torch.exp(-x))
    """,
    """
    def softplus(x):
        return torch.clamp(x, min=0) + torch.log1p(torch.exp(-torch.abs(x)))
    """,
    """
    def activated(x, act):
        return silu(x) if act == 0 else gelu_tanh(x)
    """,
    """
    def normed(x, w, unit, eps, plus_one):
        units = x.reshape(x.shape[0], -1, unit)
        mean_square = (units * units).mean(-1, keepdim=True)
        gain = 1 + w if plus_one else w
        return (units / torch.sqrt(mean_square + eps) * gain).reshape(x.shape)
    """,
    """
    def of_length_one(x, unit, eps):
        units = x.reshape(x.shape[0], -1, unit)
        square = (units * units).sum(-1, keepdim=True)
        return (units / torch.sqrt(square + eps)).reshape(x.shape)
    """,
    """
    def dequantized(codes, scales):
        return codes.double() * scales.double().repeat_interleave(32, -1)
    """,
    """
    def quantized(x):
        blocks = x.float().reshape(x.shape[0], -1, 32)
        scales = blocks.abs().amax(-1) / 127
        ratio = blocks / scales[..., None].where(scales[..., None] > 0, 1.0)
        codes = torch.sign(ratio) * torch.floor(ratio.abs() + 0.5)
        return codes.reshape(x.shape), scales, codes.sum(-1)
    """,
    """
    def part(x, unit, width, count):
        at = torch.arange(count, device=x.device)
        return x[:, at // width * unit + at % width]
    """,
    """
    def placed(table, slot, rows, column):
        out = table.clone()
        for row, place in enumerate(slot.tolist()):
            if place >= 0:
                out[place, column:column + rows.shape[1]] = rows[row]
        return out
    """,
    """
    def turned(x, cos, sin, rot, kind, offset):
        half = rot // 2
        first = torch.arange(half, device=x.device) * (1 if kind == 0 else 2)
        second = first + (half if kind == 0 else 1)
        out = x.clone()
        a, b = x[..., offset + first], x[..., offset + second]
        out[..., offset + first] = a * cos[:, None] - b * sin[:, None]
        out[..., offset + second] = b * cos[:, None] + a * sin[:, None]
        return out
    """,
    """
    def in_order(table, pages, page, count):
        at = torch.arange(count, device=table.device)
        return table[pages[at // page] * page + at % page]
    """,
    """
    def attended(q, k, v, position, scale, window, softcap):
        if position < 0:
            return torch.zeros(q.shape[0], v.shape[-1], dtype=q.dtype, device=q.device)
        first = max(0, position + 1 - window) if window > 0 else 0
        k, v = k[first:position + 1], v[first:position + 1]
        share = q.shape[0] // k.shape[1]
        k, v = k.repeat_interleave(share, 1), v.repeat_interleave(share, 1)
        scores = torch.einsum('hd,lhd->hl', q, k) * scale
        if softcap > 0:
            scores = softcap * torch.tanh(scores / softcap)
        weights = torch.exp(scores - scores.amax(-1, keepdim=True))
        weights = weights / weights.sum(-1, keepdim=True)
        return torch.einsum('hl,lhd->hd', weights, v)
    """,
    """
    def scored(x, fn):
        if fn == 1:
            return sigmoid(x)
        weights = torch.exp(x - x.amax(-1, keepdim=True))
        return weights / weights.sum(-1, keepdim=True)
    """,
    """
    def best(x, count):
        return torch.sort(x, dim=-1, descending=True, stable=True).indices[:, :count]
    """,
    """
    def chosen_of(x, chosen, groups, group_k, group_best):
        if groups > 1:
            units = x.reshape(x.shape[0], groups, -1)
            worth = torch.sort(units, dim=-1, descending=True).values[..., :group_best].sum(-1)
            kept = torch.zeros_like(worth, dtype=torch.bool)
            kept.scatter_(1, best(worth, group_k), True)
            x = torch.where(kept[..., None], units, -torch.inf).reshape(x.shape)
        return best(x, chosen)
    """,
    """
    def reweighted(scores, ids, normalise, factor):
        chosen = scores.gather(1, ids)
        if normalise:
            chosen = chosen / chosen.sum(-1, keepdim=True)
        return chosen * factor
    """,
    """
    def by_expert(x, ids, w, n):
        rows, chosen = ids.shape
        x = x.reshape(rows, -1, w.shape[1]).expand(rows, chosen, -1)
        w = w.reshape(-1, n, w.shape[1])[ids]
        return torch.einsum('rck,rcnk->rcn', x, w).reshape(rows, -1)
    """,
    """
    def weighted(x, weights):
        units = x.reshape(*weights.shape, -1)
        return (units * weights[..., None]).sum(1)
    """,
    """
    def convolved(x, w, ring, line, position, act, unit, eps):
        seqs, taps = line.shape[0], w.shape[1]
        y, ring = [], ring.clone()
        for seq, rows in enumerate(x.reshape(seqs, -1, x.shape[1])):
            at = int(line[seq])
            before = ring[at].reshape(taps - 1, -1)
            if int(position[seq * rows.shape[0]]) == 0:
                before = torch.zeros_like(before)
            every = torch.cat((before, rows))
            y.append(torch.stack([(every[r:r + taps] * w.T).sum(0) for r in range(len(rows))]))
            ring[at] = every[len(rows):].reshape(-1)
        y = torch.cat(y)
        y = activated(y, act - 1) if act else y
        return of_length_one(y, unit, eps) if unit else y, ring
    """,
    """
    def delta_rule(q, k, v, g, beta, state, line, position, key_heads, scale):
        rows, heads, seqs = v.shape[0], g.shape[1], line.shape[0]
        q, k = (x.reshape(rows, key_heads, -1).repeat_interleave(heads // key_heads, 1)
                for x in (q, k))
        v, state, y = v.reshape(rows, heads, -1), state.clone(), []
        for row in range(rows):
            seq = row // (rows // seqs)
            at = int(line[seq])
            if row % (rows // seqs) == 0:
                s = state[at].reshape(heads, q.shape[2], v.shape[2])
                s = torch.zeros_like(s) if int(position[row]) == 0 else s
            s = torch.exp(g[row])[:, None, None] * s
            missing = beta[row][:, None] * (v[row] - torch.einsum('hkv,hk->hv', s, k[row]))
            s = s + k[row][:, :, None] * missing[:, None]
            y.append(scale * torch.einsum('hkv,hk->hv', s, q[row]).reshape(-1))
            state[at] = s.reshape(-1)
        return torch.stack(y), state
    """,
    """
    def first_largest(x):
        largest = x == x.amax(-1, keepdim=True)
        at = torch.arange(x.shape[-1], device=x.device)
        return torch.where(largest, at, x.shape[-1]).amin(-1)
    """,
    """
    def after(position, finite, pages, page):
        advanced = position + finite
        if advanced < page * len(pages):
            return advanced, int(pages[advanced // page]) * page + advanced % page, True
        return page * len(pages) - 1, -1, False
    """,
    """
    def random_bits(seed, position):
        seed, words = seed % 2**64, [position % 2**32, 0, 0, 0]
        keys = [seed & 0xFFFFFFFF, seed >> 32]
        for _ in range(10):
            even, odd = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
            words = [odd >> 32 ^ words[1] ^ keys[0], odd & 0xFFFFFFFF,
                     even >> 32 ^ words[3] ^ keys[1], even & 0xFFFFFFFF]
            keys = [keys[0] + 0x9E3779B9 & 0xFFFFFFFF, keys[1] + 0xBB67AE85 & 0xFFFFFFFF]
        return words[1] << 32 | words[0]
    """,
    """
    def in_rank(x):
        return torch.sort(x, descending=True, stable=True).indices
    """,
    """
    def changed(logits, tokens, scales, adds, allowed):
        most = torch.finfo(torch.float32).max
        made = logits.clone()
        for token, scale, add in zip(tokens.tolist(), scales, adds):
            if 0 <= token < len(made):
                one = made[token]
                made[token] = (one / scale if one > 0 else one * scale) + add
        made = made.nan_to_num(-most).clamp(-most, most)
        if allowed is not None:
            at = torch.arange(len(made), device=made.device)
            made = torch.where((allowed[at // 32] >> at % 32 & 1) > 0, made, -most)
        return made
    """,
    """
    def drawn_of(scores, logits, temperature, top_k, top_p, min_p, seed, position):
        left_out = -torch.finfo(torch.float32).max
        rank = in_rank(scores)
        top = scores[rank[0]]
        if top <= left_out:
            return int(in_rank(logits)[0])
        if not temperature > 0:
            return int(rank[0])
        weight = torch.floor(torch.exp((scores - top) / temperature) * 2**30)
        weight = torch.where(scores > left_out, weight, 0.0).long()
        kept = rank[:top_k] if 0 < top_k < len(rank) else rank
        if top_p < 1:
            come = torch.cumsum(weight[kept], 0)
            wanted = max(1, int(torch.ceil(top_p * come[-1])))
            kept = kept[:int((come < wanted).sum()) + 1]
        least = int(torch.clamp(min_p, max=1) * 2**30) if min_p > 0 else 1
        share = torch.zeros_like(weight)
        share[kept] = weight[kept]
        share[share < least] = 0
        come = torch.cumsum(share, 0)
        target = random_bits(int(seed), int(position)) * int(come[-1]) >> 64
        return int((come <= target).sum())
    """,
    """
    def half(raw):
        return raw.contiguous().view(torch.float16).double()
    """,
    """
    def nibbles(raw):
        return torch.cat((raw & 15, raw >> 4), -1).double()
    """,
    """
    def q8_0(raw):
        blocks = raw.reshape(*raw.shape[:-1], -1, 34)
        codes = blocks[..., 2:].contiguous().view(torch.int8).double()
        return (half(blocks[..., :2]) * codes).flatten(-2)
    """,
    """
    def q4_0(raw):
        blocks = raw.reshape(*raw.shape[:-1], -1, 18)
        return (half(blocks[..., :2]) * (nibbles(blocks[..., 2:]) - 8)).flatten(-2)
    """,
    """
    def q4_1(raw):
        blocks = raw.reshape(*raw.shape[:-1], -1, 20)
        codes = nibbles(blocks[..., 4:])
        return (half(blocks[..., :2]) * codes + half(blocks[..., 2:4])).flatten(-2)
    """,
    """
    def q4_k(raw):
        blocks = raw.reshape(*raw.shape[:-1], -1, 144)
        packed = blocks[..., 4:16].reshape(*blocks.shape[:-1], 3, 4)
        low, least, high = packed.unbind(-2)
        scales = torch.cat((low & 63, high & 15 | low >> 6 << 4), -1).double()
        offsets = torch.cat((least & 63, high >> 4 | least >> 6 << 4), -1).double()
        codes = nibbles(blocks[..., 16:].reshape(*blocks.shape[:-1], 4, 32))
        codes = codes.reshape(*blocks.shape[:-1], 8, 32)
        scale = half(blocks[..., :2]) * scales
        offset = half(blocks[..., 2:4]) * offsets
        return (scale[..., None] * codes - offset[..., None]).flatten(-3)
    """,
    """
    def q6_k(raw):
        blocks = raw.reshape(*raw.shape[:-1], -1, 210)
        low = blocks[..., :128].reshape(*blocks.shape[:-1], 2, 1, 64)
        high = blocks[..., 128:192].reshape(*blocks.shape[:-1], 2, 1, 32)
        shift = torch.tensor([0, 4], dtype=torch.uint8, device=raw.device)[:, None]
        low = (low >> shift & 15).reshape(*blocks.shape[:-1], 2, 4, 32)
        shift = torch.tensor([0, 2, 4, 6], dtype=torch.uint8, device=raw.device)[:, None]
        codes = (low | (high >> shift & 3) << 4).reshape(*blocks.shape[:-1], 16, 16)
        scales = blocks[..., 192:208].contiguous().view(torch.int8).double()
        scales = half(blocks[..., 208:]) * scales
        return (scales[..., None] * (codes.double() - 32)).flatten(-3)
    """,
    """
    def in_panels(rows, block):
        head = 4 if block == 20 else 2
        blocks = rows.reshape(-1, 16, rows.shape[-1] // block, block)
        codes = (blocks[..., head:].int() + (128 if block == 34 else 0)) % 256
        codes, heads = codes.to(rows.dtype), blocks[..., :head]
        parts = codes.unflatten(-1, (-1, 4)), heads.unflatten(-1, (-1, 2))
        laid = [part.permute(0, 2, 3, 1, 4).flatten(2) for part in parts]
        return torch.cat(laid, -1).reshape(rows.shape)
    """,
    """
    def of_panels(rows, block):
        head = 4 if block == 20 else 2
        blocks = rows.reshape(-1, rows.shape[-1] // block, 16 * block)
        codes = (blocks[..., :-16 * head].int() + (128 if block == 34 else 0)) % 256
        heads = blocks[..., -16 * head:].unflatten(-1, (-1, 16, 2))
        parts = heads, codes.to(rows.dtype).unflatten(-1, (-1, 16, 4))
        plain = [part.permute(0, 3, 1, 2, 4).flatten(3) for part in parts]
        return torch.cat(plain, -1).reshape(rows.shape)
    """,
)

PIECES = {
    dedent(text).split("(")[0].split()[-1]: dedent(text).strip() for text in (*_TEXTS, *MAKERS)
}
"""The text of each function by its name."""

_CALL = re.compile(r"\b([a-z_][a-z_0-9]*)\(")


def pieces_for(text: str) -> str:
    """Every function that `text` calls, and those that they call, in the order of the table."""
    needed: set[str] = set()
    waiting = [text]
    while waiting:
        called = set(_CALL.findall(waiting.pop())) & PIECES.keys() - needed
        needed |= called
        waiting += [PIECES[name] for name in called]
    return "\n\n\n".join(PIECES[name] for name in PIECES if name in needed)
