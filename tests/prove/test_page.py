from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from bedstone.prove.page import emit_page
from bedstone.prove.page.facts import charts
from bedstone.spec.trace import Trace
from definitions import workload
from prove.outcomes import failed, passed

TIMING = {"method": "wall clock", "cache": "cold", "scope": "run"}


def trace(name, evaluation, n=16):
    return Trace("double_n", workload(f"w{n}", n=n), name, evaluation)


TRACES = [
    trace("fast<script>", passed(0.5, timing=TIMING, floor_ms=0.1), 16),
    trace("fast<script>", passed(5.0, timing=TIMING, floor_ms=1.0), 160),
    trace("slow", passed(0.02, at="2025-01-01"), 16),
    trace("slow", failed("TIMEOUT"), 16),
    trace("slow", passed(1.0, hardware="cpu"), 16),
    Trace("double_n", workload("w1", n=1)),
]


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.names = []

    def handle_starttag(self, tag, _attrs):
        self.names.append(tag)


def test_there_is_a_chart_for_each_definition_and_device():
    one, two = charts(TRACES)
    assert [(chart.definition, chart.hardware) for chart in (one, two)] == [
        ("double_n", "H200"),
        ("double_n", "cpu"),
    ]
    assert one.workloads == ("n=16", "n=160")
    assert one.floor == {"n=16": 0.1, "n=160": 1.0}
    assert one.method == "wall clock, cold cache, run"
    newest = {(p.workload, p.solution): p.status for p in one.points}
    assert newest["n=16", "slow"] == "TIMEOUT"


def test_workloads_of_the_same_sizes_are_told_apart():
    alike = [Trace("d", workload(u, n=4), "s", passed(1.0)) for u in ("first", "second")]
    assert charts(alike)[0].workloads == ("n=4 (first)", "n=4 (second)")
    apart = [Trace("d", workload(f"u{k}", n=4, k=k), "s", passed(1.0)) for k in (1, 2)]
    assert charts(apart)[0].workloads == ("k=1", "k=2")


def test_the_page_is_one_file_that_runs_nothing():
    page = emit_page(TRACES)
    tags = Tags()
    tags.feed(page)
    assert "script" not in tags.names
    assert "http" not in page
    assert tags.names.count("svg") == 2
    assert "TIMEOUT" in page


def test_a_point_lies_above_the_floor_and_longer_is_higher():
    page = emit_page(TRACES[:2])
    svg = ET.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])  # noqa: S314
    short, long = [float(c.get("cy")) for c in svg.iter("circle")]
    floors = [float(x.get("y1")) for x in svg.iter("line") if x.get("class") == "floor"]
    assert long < short
    assert short < floors[0]
    # a power of ten is as tall anywhere
    assert short - long == pytest.approx(floors[0] - floors[1])


def test_nothing_evaluated_is_said_so():
    assert "No Trace was evaluated." in emit_page([])
