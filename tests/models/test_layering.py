"""Every tensor of a step belongs to the layer its name tells."""

import re

import pytest

from bedstone.build.step import form_graph
from bedstone.checkpoint.shapes import shape_checkpoint
from bedstone.graph.refs import reads, writes
from bedstone.models.layering import layer_of

CONSTANT = re.compile(r"^model\.layers\.(\d+)\.")
SHAPES = ("llama-3.2-1b", "qwen3-0.6b", "gemma-3-4b", "deepseek-v2-lite", "qwen3-next-80b-a3b")


@pytest.mark.parametrize(
    ("tensor", "layer"),
    [
        ("l3.q", 3),
        ("l12.qr.1", 12),
        ("x.0", None),
        ("x.4", 3),
        ("k.3@1", 3),
        ("v.0.7@1", 0),
        ("ring.q.5.0@1", 5),
        ("l4.rows@2", 4),
        ("logits", None),
        ("last", None),
        ("final", None),
        ("next", None),
    ],
)
def test_a_name_tells_its_layer(tensor, layer):
    assert layer_of(tensor) == layer


@pytest.mark.parametrize(("form", "rows"), [("decode", 1), ("chunk", 512), ("batch", 2)])
@pytest.mark.parametrize("name", SHAPES)
def test_what_an_op_makes_of_a_layers_constant_is_of_that_layer(name, form, rows):
    graph = form_graph(shape_checkpoint(name), form, 1024, rows)
    found = set()
    for op in graph.ops:
        for constant in filter(CONSTANT.match, reads(op)):
            layer = int(CONSTANT.match(constant)[1])
            assert {layer_of(made) for made in writes(op)} == {layer}, op
            found.add(layer)
    assert len(found) == shape_checkpoint(name).config.layers
