"""Which changes between two packages turn a PASS into a FAIL: the smallest set of them."""
