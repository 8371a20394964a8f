"""Small changes to a manifest, most of which break a rule.

A node is changed to what another manifest has at the same *shape* of place (names and indices
replaced by `*`), so most changes are well typed and reach the verifier rather than the parser.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fuzz.dice import Dice

Path = tuple[str | int, ...]
Pool = dict[Path, list[Any]]

SECTIONS = frozenset({"vars", "states", "buffers", "modules", "ops", "programs"})
MAPS = frozenset({"scratch", "groups"})
NUMBERS = (
    0, 1, 2, 3, 16, 64, 255, 256, 257, 1024, 1025, 65_535, 65_536, 232_449, -1, -0.0, 0.5, 8.0,
    2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 1e300,
)  # fmt: skip
JUNK: tuple[Any, ...] = (None, True, "", "nobody", 7, 1.5, [], {}, [1, 2], {"var": "v0"})


def pool_of(manifests: Iterable[Any]) -> Pool:
    """What stands at each shape of place in the manifests, each value once."""
    pool: dict[Path, dict[str, Any]] = defaultdict(dict)
    for manifest in manifests:
        for path, value in _nodes(manifest):
            pool[shape_of(path)].setdefault(json.dumps(value, sort_keys=True), value)
    return {shape: list(values.values()) for shape, values in pool.items()}


def shape_of(path: Path) -> Path:
    """A path with its names and indices replaced by `*`."""
    return tuple(
        "*" if isinstance(step, int) or _is_name(path, at) else step for at, step in enumerate(path)
    )


def _is_name(path: Path, at: int) -> bool:
    if at == 1:
        return path[0] in SECTIONS
    return at > 1 and path[at - 1] in MAPS and not (path[at - 1] == "groups" and at > 2)


def _nodes(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if path:
        yield path, value
    if isinstance(value, dict | list):
        for step, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _nodes(child, (*path, step))


def mutated(manifest: Any, dice: Dice, pool: Pool) -> str:
    """The text of `manifest` (which this changes) after one change."""
    if dice.chance(0.03):
        return _text_cut(json.dumps(manifest), dice)
    change = dice.pick(CHANGES)
    nodes = list(_nodes(manifest))
    shape = dice.pick(sorted({shape_of(path) for path, _ in nodes}, key=str))
    path, value = dice.pick([node for node in nodes if shape_of(node[0]) == shape])
    change(manifest, path, value, dice, pool)
    return json.dumps(manifest)


def _text_cut(text: str, dice: Dice) -> str:
    at = dice.between(0, len(text) - 1)
    return text[:at] + text[at + dice.between(1, 3) :]


def _set(manifest: Any, path: Path, value: Any) -> None:
    parent = _parent(manifest, path)
    parent[path[-1]] = json.loads(json.dumps(value))


def _parent(manifest: Any, path: Path) -> Any:
    for step in path[:-1]:
        manifest = manifest[step]
    return manifest


def _transplant(manifest: Any, path: Path, value: Any, dice: Dice, pool: Pool) -> None:
    _set(manifest, path, dice.pick(pool.get(shape_of(path), [value])))


def _remove(manifest: Any, path: Path, _value: Any, _dice: Dice, _pool: Pool) -> None:
    del _parent(manifest, path)[path[-1]]


def _add(manifest: Any, path: Path, value: Any, dice: Dice, pool: Pool) -> None:
    """Adds a member that the node (or the nearest object above) lacks."""
    while path and not isinstance(value, dict):
        path = path[:-1]
        value = _parent(manifest, (*path, ""))
    shape = shape_of((*path, "?"))[:-1]
    lacking = [s for s in pool if s[:-1] == shape and s[-1] not in value]
    if lacking:
        member = dice.pick(lacking)
        name = f"added{dice.between(0, 9)}" if member[-1] == "*" else member[-1]
        _set(manifest, (*path, name), dice.pick(pool[member]))


def _renumber(manifest: Any, path: Path, value: Any, dice: Dice, pool: Pool) -> None:
    numbers = [p for p, v in _nodes(manifest) if isinstance(v, int | float) and v is not True]
    if not isinstance(value, int | float) and numbers:
        path = dice.pick(numbers)
    elif not isinstance(value, int | float):
        return _transplant(manifest, path, value, dice, pool)
    old = _parent(manifest, path)[path[-1]]
    near = [old + 1, old - 1, old * 2] if dice.chance(0.5) else []
    return _set(manifest, path, dice.pick([*near, *NUMBERS]))


def _rename(manifest: Any, path: Path, value: Any, dice: Dice, pool: Pool) -> None:
    """Puts one of the manifest's own names where another stands."""
    if not isinstance(value, str):
        return _transplant(manifest, path, value, dice, pool)
    names = [n for s in sorted(SECTIONS) for n in manifest.get(s, {})]
    topology = manifest.get("topology") or {}
    return _set(manifest, path, dice.pick([*names, *topology.get("groups", {}), "nobody"]))


def _repeat(manifest: Any, path: Path, value: Any, dice: Dice, pool: Pool) -> None:
    parent = _parent(manifest, path)
    if isinstance(parent, list):
        parent.insert(dice.between(0, len(parent)), json.loads(json.dumps(value)))
    elif shape_of(path)[-1] == "*":
        _set(manifest, (*path[:-1], f"{path[-1]}2"), value)
    else:
        _transplant(manifest, path, value, dice, pool)


def _reorder(manifest: Any, path: Path, value: Any, dice: Dice, pool: Pool) -> None:
    parent = _parent(manifest, path)
    if isinstance(parent, list):
        parent.insert(dice.between(0, len(parent) - 1), parent.pop(int(path[-1])))
    else:
        _transplant(manifest, path, value, dice, pool)


def _spoil(manifest: Any, path: Path, _value: Any, dice: Dice, _pool: Pool) -> None:
    _set(manifest, path, dice.pick(JUNK))


def _name_constant(manifest: Any, path: Path, value: Any, dice: Dice, pool: Pool) -> None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        _set(manifest, path, "C")
        manifest["constants"] = {"C": value}
    else:
        _transplant(manifest, path, value, dice, pool)


Change = Callable[[Any, Path, Any, Dice, Pool], None]
CHANGES: tuple[Change, ...] = (
    _transplant, _transplant, _transplant, _transplant, _remove, _remove, _add, _add, _add,
    _renumber, _renumber, _rename, _rename, _repeat, _reorder, _spoil, _name_constant,
)  # fmt: skip
