"""The picture of a run: whole, inside its frame, and with everything that was found."""

import xml.etree.ElementTree as ET

import pytest

from bedstone.bench.cases import Case
from bedstone.bench.rates import Rates
from bedstone.bench.record import Ran, Record, Result
from bedstone.bench.roofline import Axis, draw_roofline
from bedstone.bench.spread import Spread
from bedstone.build.costs import Cost

NS = "{http://www.w3.org/2000/svg}"


def record(machine, *points, model="toy"):
    package = Ran("p", model, "toy.gguf", "hopper", "quantized", 4096, 64, 1.0, None, None)
    results = tuple(
        Result(
            case, at, 1, Spread.of([seconds]), (seconds,), Cost(nbytes, 0, 0, operations), machine
        )
        for case, at, seconds, nbytes, operations in points
    )
    return Record("cuda", machine, (package, package), results, None)


def picture(found):
    return ET.fromstring(draw_roofline(found))  # noqa: S314 (text of our own)


GPU = record(
    Rates(4.3e12, 7.8e14),
    (Case("decode", 1, 512), 0, 2.3e-3, 8_100_000_000, 8_000_000_000),
    (Case("decode", 1, 512), 1, 2.4e-3, 8_100_000_000, 8_000_000_000),
    (Case("decode", 64, 512), 0, 4.9e-3, 12_900_000_000, 515_000_000_000),
    (Case("prefill", 1, 2048), 0, 30e-3, 12_000_000_000, 16_000_000_000_000),
)
CPU = record(Rates(3e10), (Case("decode", 1, 64), 0, 9e-3, 270_000_000, 270_000_000))


@pytest.mark.parametrize("found", [GPU, CPU], ids=["gpu", "cpu"])
def test_everything_lies_inside_the_frame(found):
    root = picture(found)
    width, height = float(root.get("width")), float(root.get("height"))
    circles = root.findall(f"{NS}circle")
    assert len(circles) == len(found.results)
    for tag, x, y in (("circle", "cx", "cy"), ("line", "x1", "y1"), ("line", "x2", "y2")):
        for each in root.findall(f"{NS}{tag}"):
            assert 0 <= float(each.get(x)) <= width
            assert 0 <= float(each.get(y)) <= height


def test_no_point_lies_above_the_roof_that_bounds_it():
    root = picture(GPU)
    roof = [line for line in root.findall(f"{NS}line") if line.get("stroke-width") == "2"]
    assert len(roof) == 2, "a slope and a ceiling"
    ceiling = float(roof[1].get("y1"))
    assert all(float(each.get("cy")) > ceiling for each in root.findall(f"{NS}circle"))


def test_each_point_says_its_case_and_its_share_of_the_limit():
    texts = [each.text for each in picture(GPU).findall(f"{NS}text")]
    assert "b1 c512 · 82%" in texts
    assert any(text.startswith("p2048 · ") for text in texts)
    assert any("memory 4,300 GB/s · matrices 780 TFLOP/s" in text for text in texts)


def test_labels_of_points_at_one_place_do_not_overlap():
    root = picture(GPU)
    labels = [t for t in root.findall(f"{NS}text") if (t.text or "").startswith("b1 c512")]
    first, second = (float(label.get("y")) for label in labels)
    assert abs(first - second) >= 12


def test_a_name_is_text_whatever_it_holds():
    found = record(Rates(3e10), (Case("decode", 1, 64), 0, 9e-3, 10**8, 10**8), model="<b> & co")
    assert "<b> & co" in "".join(picture(found).itertext())


def test_an_axis_spans_whole_decades():
    axis = Axis.over([2.0, 30.0], 100, 200)
    assert axis.decades == (0, 1, 2)
    assert axis.at(1.0) == 100
    assert axis.at(10.0) == pytest.approx(200)
