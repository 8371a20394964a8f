"""The shapes a JSON value may take, as data: the language `bedstone.spec.grammar` is written in.

Four readers walk the same shapes: `decode` (JSON value to typed value), `encode` (typed value to
canonical text), `schema` (to JSON Schema) and `constants` (where a constant's name may stand). A
new field of the manifest is a row here and in its type, nowhere else.

Shapes compare by identity: two rows that look alike are two places.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec import NODEFAULT
from msgspec.structs import FieldInfo, fields

from bedstone.spec.frozen import Frozen


class Integer(Frozen, eq=False):
    """An integer from `low` to `high`; `format` is the schema's word for it.

    A `literal` one is never the name of a constant.
    """

    name: str
    format: str
    low: int
    high: int
    literal: bool = False


class Number(Frozen, eq=False):
    """Any JSON number, held as a float32 (`single`) or a double."""

    format: str
    single: bool = False


class Text(Frozen, eq=False):
    """Any string."""


class Boolean(Frozen, eq=False):
    """`true` or `false`."""


class Choice(Frozen, eq=False):
    """One of a closed set of words; the schema lists them in `groups`.

    `rule` is what another word breaks.
    """

    groups: tuple[tuple[str, ...], ...]
    rule: str = "P7"

    @property
    def words(self) -> tuple[str, ...]:
        """Every word, in order."""
        return tuple(word for group in self.groups for word in group)


class Param(Frozen, eq=False):
    """A parameter type's string."""


class List(Frozen, eq=False):
    """An array of `item`, of `length` where that is set; a tuple once decoded."""

    item: "Shape"
    length: int | None = None


class Positional(Frozen, eq=False):
    """An array with a shape for each place; an instance of `kind` (or a tuple) once decoded."""

    items: tuple["Shape", ...]
    kind: type[Any] = tuple


class Table(Frozen, eq=False):
    """An object whose keys are names."""

    item: "Shape"


class Row(Frozen, eq=False):
    """A field: its `name` in JSON, its shape, its attribute in the type.

    Left out, it takes `default` where not `required`; `null` means left out where `nullable`.
    """

    name: str
    shape: "Shape"
    attribute: str
    required: bool = True
    nullable: bool = False
    default: object = None


class Record(Frozen, eq=False):
    """An object with the fields of `rows`, in canonical order.

    `flat` is a row whose fields lie in this object itself, beside those of `rows`.
    """

    kind: type[Any]
    rows: tuple[Row, ...]
    flat: Row | None = None


class Wrap(Frozen, eq=False):
    """An object of one key, `tag`, around a value of its own type."""

    tag: str
    shape: "Shape"


class ByTag(Frozen, eq=False):
    """Records told apart by the one key only they have.

    Where not `closed`, the schema does not say that further keys are refused (they are).
    """

    arms: Mapping[str, "Record | Wrap"]
    closed: bool = True


class ByValue(Frozen, eq=False):
    """Records told apart by the word under `key`."""

    key: str
    arms: Mapping[str, Record]


class ByField(Frozen, eq=False):
    """`marked` where any of the keys `marks` is there, else `plain`."""

    marks: frozenset[str]
    marked: "Ref"
    plain: "Ref"


class Either(Frozen, eq=False):
    """Alternatives told apart by the kind of JSON value, tried in order."""

    shapes: tuple["Shape", ...]


class Ref(Frozen, eq=False):
    """The shape of that name in the grammar."""

    name: str


Shape = (
    Integer | Number | Text | Boolean | Choice | Param | List | Positional | Table
    | Record | Wrap | ByTag | ByValue | ByField | Either | Ref
)  # fmt: skip


def record(
    type_: type[Frozen],
    shapes: Mapping[str, Shape],
    *,
    attributes: Mapping[str, str] = MappingProxyType({}),
    required: tuple[str, ...] = (),
    flat: str | None = None,
) -> Record:
    """A record of `type_` with a row for each of `shapes`; defaults are the type's own.

    `attributes` gives the attribute where the JSON name is another, `required` the fields JSON
    must state although the type has a default, `flat` the field that lies flat.
    """
    defaults = {f.name: _default(f) for f in fields(type_)}
    rows = []
    for name, shape in shapes.items():
        attribute = attributes.get(name, name)
        default = defaults[attribute]
        needed = default is NODEFAULT or name in required
        rows.append(Row(name, shape, attribute, needed, not needed and default is None, default))
    flat_row = next((row for row in rows if row.name == flat), None)
    return Record(type_, tuple(row for row in rows if row is not flat_row), flat_row)


def _default(spec: FieldInfo) -> object:
    return spec.default_factory() if spec.default_factory is not NODEFAULT else spec.default
