"""Functions by which references make inputs that plain random numbers would not do for."""

MAKERS = (
    """
    def gaps(x):
        ranked = torch.sort(x, dim=-1, descending=True).values
        more, less = ranked[:, :-1], ranked[:, 1:]
        return (more - less) / (more.abs() + less.abs() + 1e-30)
    """,
    """
    def clearness(x, chosen, groups, group_k, group_best):
        apart = x.new_full(x.shape[:1], torch.inf)
        if groups > 1:
            units = x.reshape(x.shape[0], groups, -1)
            worth = torch.sort(units, dim=-1, descending=True).values[..., :group_best].sum(-1)
            if group_k < groups:
                apart = gaps(worth)[:, group_k - 1]
            kept = worth >= torch.sort(worth, dim=-1, descending=True).values[:, group_k - 1, None]
            x = torch.where(kept[..., None], units, -1e9).reshape(x.shape)
        return torch.minimum(apart, gaps(x)[:, :chosen].amin(-1))
    """,
    """
    def blocks_of(shape, block, places, most):
        raw = torch.randint(0, 256, (shape[0], shape[1] // block, block), dtype=torch.uint8)
        for at in places:
            scale = ((torch.rand(*raw.shape[:2], 1) * 2 - 1) * most).half()
            raw[..., at:at + 2] = scale.view(torch.uint8)
        return raw.reshape(shape)
    """,
    """
    def codes_of(rows, width):
        codes = torch.randint(-127, 128, (rows, width), dtype=torch.int8)
        scales = torch.rand(rows, width // 32) * 0.02 + 0.002
        return codes, scales, codes.reshape(rows, -1, 32).sum(-1, dtype=torch.int32)
    """,
    """
    def slots_of(rows, slots):
        slot = torch.randperm(slots)[:rows].int()
        slot[1:2] = -1
        if not bool((slot == 0).any()):
            slot[0] = 0
        return slot
    """,
    """
    def slots_at(position, pages, page, stride):
        at = position.clamp(min=0)
        rows = torch.arange(len(position), device=position.device) * stride
        found = pages[rows, at // page] * page + at % page
        return torch.where(position < 0, -1, found).int()
    """,
    """
    def distinct(rows, count, below):
        return torch.stack([torch.randperm(below)[:count] for _ in range(rows)]).int()
    """,
    """
    def with_equals(rows, width):
        return torch.round(torch.randn(rows, width) * 4) / 4
    """,
    """
    def with_faults(logits):
        if torch.rand(()) < 0.3:
            logits[torch.randint(0, len(logits), ()), 0] = torch.nan
        return logits
    """,
    """
    def consecutive(rows, seqs, length):
        each = rows // seqs
        starts = torch.randint(0, length - each + 1, (seqs,))
        starts[torch.rand(seqs) < 0.5] = 0
        return (starts[:, None] + torch.arange(each)).reshape(-1).int()
    """,
    """
    def positions(rows, stride, length):
        if stride == 0:
            return consecutive(rows, 1, length)
        at = torch.randint(0, length, (rows,), dtype=torch.int32)
        at[2:3] = -1
        return at
    """,
    """
    def lines_of(seqs, lines):
        return (torch.randperm(lines - 1)[:seqs] + 1).int()
    """,
)
