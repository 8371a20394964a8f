import numpy as np
import pytest

from bedstone.errors import CallerError
from bedstone.prove.timing import cpu_flush_bytes, geometric_mean, percentile, summarize


def test_f13_percentiles_lie_between_calls_and_few_calls_have_no_p99():
    times = [float(ms) for ms in range(15, 0, -1)]
    summary = summarize(times)
    assert (summary.n, summary.p50, summary.least, summary.mean) == (15, 8.0, 1.0, 8.0)
    assert summary.p95 == pytest.approx(14.3)
    assert summary.p99 is None
    assert percentile(sorted(times), 0.99) == pytest.approx(14.86)


def test_percentiles_are_numpys():
    times = np.random.default_rng(0).exponential(1.0, 200)
    summary = summarize(times.tolist())
    for share, value in ((50, summary.p50), (95, summary.p95), (99, summary.p99)):
        assert value == pytest.approx(float(np.percentile(times, share)))
    assert summarize([3.0]).p95 == 3.0


@pytest.mark.parametrize("values", [[], [1.0, 0.0], [1.0, -2.0], [100.0, 100.0, 0.0]])
def test_f10_a_mean_of_ratios_refuses_what_is_not_above_0(values):
    with pytest.raises(CallerError, match="needs values above 0"):
        geometric_mean(values)


def test_a_geometric_mean():
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)


def test_f12_the_flush_is_twice_the_largest_cache(tmp_path):
    for at, size in enumerate(("32K", "1024K", "36M")):
        (tmp_path / f"index{at}").mkdir()
        (tmp_path / f"index{at}" / "size").write_text(f"{size}\n")
    assert cpu_flush_bytes(tmp_path) == 2 * 36 * 2**20
    assert cpu_flush_bytes(tmp_path / "nowhere") == 64 * 2**20
