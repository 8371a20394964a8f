"""A run of `bedstone bench` as text."""

from typing import TYPE_CHECKING

from bedstone.cli.table import columns, size

if TYPE_CHECKING:
    from bedstone.bench.record import Record, Result

_HEADER = ("case", "median", "quartiles", "tok/s", "bytes", "of copy", "of matrices", "of limit")


def record_lines(record: "Record") -> list[str]:
    """The machine, the packages, a row a result, and how two compare."""
    machine = record.machine
    rate = "" if machine.operations is None else f" · {machine.operations / 1e12:.0f} TFLOP/s"
    lines = [f"machine  {record.device} · {machine.bandwidth / 1e9:.0f} GB/s{rate}"]
    if machine.note is not None:
        lines.append(f"note     {machine.note}")
    for at, ran in enumerate(record.packages):
        drawn = (
            "" if ran.draw_seconds is None else f", random weights drawn {ran.draw_seconds:.2f} s"
        )
        name = f"{ran.model} · {ran.checkpoint} · {ran.target} {ran.numerics}"
        lines += [f"package  {name} · load {ran.load_seconds:.2f} s{drawn}"]
        own = [_row(result) for result in record.results if result.package == at]
        lines += columns([_HEADER, *own])
    if record.first_seconds is not None:
        lines.append(f"process start to first token  {record.first_seconds:.2f} s")
    for case, spread in record.comparisons:
        lines.append(
            f"second / first  {case}: {spread.median:.3f} [{spread.low:.3f}, {spread.high:.3f}]"
        )
    return lines


def _row(result: "Result") -> tuple[str, ...]:
    seconds, share = result.seconds, result.of_operations
    return (
        str(result.case),
        f"{seconds.median * 1e3:.3f} ms",
        f"{seconds.low * 1e3:.3f}–{seconds.high * 1e3:.3f}",
        f"{result.tokens_per_second:.0f}",
        size(result.cost.nbytes),
        f"{result.of_bandwidth:.1%}",
        "" if share is None else f"{share:.1%}",
        f"{result.limit_seconds / seconds.median:.1%}",
    )
