"""A row of the mathematics: how the tensors of related entries are shaped and what they compute."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Family:
    """What entries of one name compute, whatever form they read, write or hold weights in.

    `shapes` gives each tensor's axes by its plain name, an axis being a parameter, a number or an
    expression of them. `body` leaves every result, in float64, under its plain name: inputs are
    float64 or int64 by then, dense and decoded. `?name:` begins a line for entries that have such a
    parameter; `$name` is a parameter's number, `defaults` where the entry has none of that name.

    `makes` says how inputs are made that are no plain random numbers. `over` names buffers that are
    written in part, `results` what the body leaves, the last of it for a table where there is one.
    `sizes` are small ones that suit every entry, with axes that are no parameters of a kernel.
    `clear` is how clear what the body chooses is, for each row: of many rows that are drawn those
    are taken where it is most, since a rounding decides what is nearly equal.
    """

    op_type: str
    shapes: Mapping[str, str]
    body: str
    results: str = "y"
    sizes: Mapping[str, int | float] = field(default_factory=dict)
    makes: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, int | float] = field(default_factory=dict)
    over: tuple[str, ...] = ()
    clear: str = ""
