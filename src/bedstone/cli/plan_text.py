"""A survey of a model's steps as lines of text."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping

from bedstone.build.summary import MissGroup, Summary
from bedstone.build.survey import Machine, Survey
from bedstone.cli.table import counted, size

_WIDTH = 100
_INDENT = " " * 11
_GLUE = "\0"


def survey_text(survey: Survey) -> list[str]:
    """The model and the machine, then each form."""
    config, options = survey.config, survey.options
    lines = [
        f"{config.name}: {config.architecture}, {counted(config.layers, 'layer')}, "
        f"{options.numerics}, context {survey.context}"
    ]
    if options.held:
        lines += _listed("held", options.held, ", ")
    lines += _listed("machine", _machine(survey.machine), ", ")
    for form, summary in survey.summaries.items():
        lines += ["", *_form(form, summary, survey.machine)]
    return lines


def _machine(machine: Machine) -> Iterator[str]:
    bandwidth = machine.bandwidth
    rate = f"{bandwidth.bytes_per_second / 1e9:.1f} GB/s"
    if bandwidth.measured:
        yield f"reads {rate} (measured now, {counted(bandwidth.threads, 'thread')})"
    else:
        yield f"reads {rate} (given)"
    if machine.compute is not None:
        yield f"computes {machine.compute / 1e12:.2f} TFLOP/s (given)"


def _form(form: str, summary: Summary, machine: Machine) -> Iterator[str]:
    yield f"{form:<9}  {_launches(summary)}"
    yield from _listed("census", _counts(summary.census))
    yield from _listed("fused", _counts(summary.fusions) or ["nothing"])
    yield from _listed("missed", map(_miss, summary.misses), "; ")
    yield from _listed("bytes", _traffic(summary))
    yield from _listed("roofline", [_time(summary, machine)])
    saved = summary.unshared_bytes - summary.arena_bytes
    yield from _listed("arena", [size(summary.arena_bytes), f"sharing saves {size(saved)}"])


def _launches(summary: Summary) -> str:
    """`292 launches: 36 layers of 8, 4 outside`, layers of one count together."""
    counts = sorted(set(summary.layers))
    layers = [(summary.layers.count(launches), launches) for launches in counts]
    spelled = [f"{counted(times, 'layer')} of {launches}" for times, launches in layers]
    rows = f", {summary.rows} rows" if summary.rows > 1 else ""
    parts = ", ".join([*spelled, f"{summary.outside} outside"])
    return f"{counted(summary.launches, 'launch')}{rows}: {parts}"


def _counts(counts: Mapping[str, int]) -> list[str]:
    return [f"{name} {count}" for name, count in counts.items()]


def _miss(group: MissGroup) -> str:
    return f"{group.rule} {group.count}, {group.reason} ({group.why})"


def _traffic(summary: Summary) -> list[str]:
    cost = summary.cost
    return [
        f"{size(cost.nbytes)} a step",
        f"weights {size(cost.weights)}",
        f"cache {size(cost.cache)} at position {summary.at}",
        f"activations {size(cost.activations)}",
    ]


def _time(summary: Summary, machine: Machine) -> str:
    rate = machine.bandwidth.bytes_per_second
    seconds = summary.cost.seconds(rate, machine.compute)
    bound = "memory"
    if machine.compute is not None and seconds > summary.cost.seconds(rate):
        bound = "arithmetic"
    return (
        f"{_duration(seconds)} by {bound}, {summary.rows / seconds:.1f} tokens/s "
        f"({summary.cost.operations / 1e9:.1f} GFLOP)"
    )


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.2f} ms"


def _listed(title: str, items: Iterable[str], separator: str = " · ") -> list[str]:
    """The items under a title, each kept whole where lines break; nothing where there are none."""
    text = separator.join(item.replace(" ", _GLUE) for item in items)
    lines = textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=f"  {title:<9}",
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_GLUE, " ") for line in lines]
