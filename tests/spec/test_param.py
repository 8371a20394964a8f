"""Parameter types: the spellings that pass, and what each that fails is told."""

import re

import pytest

from bedstone.spec.manifest import BufferParam, BytesParam, ParamType, ScalarParam, StateParam
from bedstone.spec.param import parse_param, pattern


@pytest.mark.parametrize(
    ("text", "param"),
    [
        ("i32", ScalarParam("i32")),
        (" u8\n", ScalarParam("u8")),
        ("bytes<128>", BytesParam(128)),
        ("bytes<+004>", BytesParam(4)),
        ("bytes<4294967295>", BytesParam(2**32 - 1)),
        ("bytes<" + "0" * 10**5 + "1>", BytesParam(1)),
        ("inout state", StateParam("inout")),
        ("  in    buffer<f32>  ", BufferParam("in", "f32")),
        ("in \tbuffer<f32>", BufferParam("in", "f32")),
        ("\u2003out state\xa0", StateParam("out")),
        ("\x85in buffer<fp8e8m0>", BufferParam("in", "fp8e8m0")),
    ],
)
def test_read(text: str, param: ParamType) -> None:
    assert parse_param(text) == param
    assert re.search(pattern(), str(param))
    assert parse_param(str(param)) == param


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a scalar"),
        ("u32", "expected a scalar"),
        ("tensormap", "expected a scalar"),
        ("buffer<f32>", "expected a scalar"),
        ("bytes<4", "expected a scalar"),
        ("in\tbuffer<f32>", "expected a scalar"),
        ("bytes<0>", "byte count"),
        ("bytes<+>", "byte count"),
        ("bytes< 4>", "byte count"),
        ("bytes<\u0664>", "byte count"),
        ("bytes<4294967296>", "byte count"),
        ("bytes<" + "9" * 10**6 + ">", "byte count"),
        ("ref buffer<f32>", "direction `in`, `out` or `inout`, found `ref`"),
        ("\x1cin state", "direction"),
        ("in bytes<4>", "`state` or `buffer<dtype>`"),
        ("in buffer<f32> x", "`state` or `buffer<dtype>`"),
        ("in buffer<f64>", "unknown dtype `f64`"),
        ("in buffer< f32>", "unknown dtype ` f32`"),
        ("in " + "x" * 10**6, "`state` or `buffer<dtype>`"),
    ],
)
def test_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        parse_param(text)
    assert len(str(caught.value)) < 300
