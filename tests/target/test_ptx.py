"""What PTX text says of itself."""

import pytest

from bedstone.errors import KernelError
from bedstone.target.ptx import parse_ptx

TEXT = b"""//
// .version 1.0 in a comment is none
.version 8.4
.target sm_86
.address_size 64

.visible .entry scale(
	.param .u64 scale_param_0
)
.func helper()
.weak .entry other()
.entry last$1()
"""


def test_a_text_names_its_version_target_and_entries():
    ptx = parse_ptx(TEXT, "m")
    assert (ptx.isa, ptx.target, ptx.entries) == ((8, 4), "sm_86", ("last$1", "other", "scale"))


@pytest.mark.parametrize("text", [b"", b"int x;", b".version 8.4\n", b".target sm_90\n"])
def test_other_text_is_no_ptx(text):
    with pytest.raises(KernelError, match="`m` is no PTX"):
        parse_ptx(text, "m")
