"""Small changes to a manifest, most of which break a rule.

A node is changed to what another manifest has at the same *shape* of place (names and indices
replaced by `*`), so most changes are well typed and reach the verifier rather than the parser.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from fuzz.dice import Dice

Path = tuple[str | int, ...]
Values = dict[Path, list[Any]]


@dataclass(frozen=True, slots=True)
class Pool:
    """What can stand at a shape of place: in `sound` manifests, and in `broken` ones alone."""

    sound: Values
    broken: Values


SECTIONS = frozenset({"vars", "states", "buffers", "modules", "ops", "programs"})
NUMBERS = (
    0, 1, 2, 3, 16, 64, 255, 256, 257, 1024, 1025, 65_535, 65_536, 232_449, -1, -0.0, 0.5, 8.0,
    2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 1e300,
)  # fmt: skip
JUNK: tuple[Any, ...] = (None, True, "", "nobody", 7, 1.5, [], {}, [1, 2], {"var": "v0"})


def pool_of(sound: Iterable[Any], broken: Iterable[Any]) -> Pool:
    """What stands at each shape of place in the manifests, each value once."""
    good, bad = _by_shape(sound), _by_shape(broken)
    only_bad = {
        shape: [value for text, value in values.items() if text not in good.get(shape, {})]
        for shape, values in bad.items()
    }
    return Pool(
        {shape: list(values.values()) for shape, values in good.items()},
        {shape: values for shape, values in only_bad.items() if values},
    )


def _by_shape(manifests: Iterable[Any]) -> dict[Path, dict[str, Any]]:
    found: dict[Path, dict[str, Any]] = defaultdict(dict)
    for manifest in manifests:
        for node in _nodes(manifest):
            found[node.shape].setdefault(json.dumps(node.value, sort_keys=True), node.value)
    return found


@dataclass(frozen=True, slots=True)
class Node:
    """A value of a manifest, where it is, and the shape of that place."""

    path: Path
    shape: Path
    value: Any


def _nodes(value: Any, path: Path = (), shape: Path = ()) -> Iterator[Node]:
    if path:
        yield Node(path, shape, value)
    if isinstance(value, dict | list):
        named = _holds_names(shape)
        for step, child in value.items() if isinstance(value, dict) else enumerate(value):
            like = "*" if named or isinstance(step, int) else step
            yield from _nodes(child, (*path, step), (*shape, like))


def _holds_names(shape: Path) -> bool:
    """Whether the members of an object at that shape of place are named by the manifest."""
    if len(shape) == 1:
        return shape[0] in SECTIONS
    return shape == ("topology", "groups") or shape[-1:] == ("scratch",)


def mutated(manifest: Any, dice: Dice, pool: Pool) -> str:
    """The text of `manifest` (which this changes) after one change."""
    if dice.chance(0.03):
        return _text_cut(json.dumps(manifest), dice)
    change = dice.pick(CHANGES)
    nodes: dict[Path, list[Node]] = defaultdict(list)
    for node in _nodes(manifest):
        nodes[node.shape].append(node)
    shape = dice.pick(sorted(nodes, key=str))
    change(manifest, dice.pick(nodes[shape]), dice, pool)
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


def _transplant(manifest: Any, node: Node, dice: Dice, pool: Pool) -> None:
    _set(manifest, node.path, dice.pick(pool.sound.get(node.shape, [node.value])))


def _remove(manifest: Any, node: Node, _dice: Dice, _pool: Pool) -> None:
    del _parent(manifest, node.path)[node.path[-1]]


def _add(manifest: Any, node: Node, dice: Dice, pool: Pool) -> None:
    """Adds a member that the object, or the nearest one above, lacks."""
    path, shape, value = node.path, node.shape, node.value
    while path and not isinstance(value, dict):
        value, path, shape = _parent(manifest, path), path[:-1], shape[:-1]
    lacking = [s for s in pool.sound if s[:-1] == shape and s[-1] not in value]
    if lacking:
        member = dice.pick(lacking)
        name = f"added{dice.between(0, 9)}" if member[-1] == "*" else member[-1]
        _set(manifest, (*path, name), dice.pick(pool.sound[member]))


def _infect(manifest: Any, _node: Node, dice: Dice, pool: Pool) -> None:
    """Puts what only broken manifests have where the manifest has, or could have, its like."""
    members: dict[Path, list[str | int]] = defaultdict(list)
    for shape in pool.broken:
        members[shape[:-1]].append(shape[-1])
    places: dict[Path, list[Path]] = defaultdict(list)
    for node in _nodes(manifest):
        places[node.shape].append(node.path)
        for member in members.get(node.shape, ()) if isinstance(node.value, dict) else ():
            if member != "*" and member not in node.value:
                places[(*node.shape, member)].append((*node.path, member))
    shape = dice.pick([shape for shape in pool.broken if shape in places])
    _set(manifest, dice.pick(places[shape]), dice.pick(pool.broken[shape]))


def _renumber(manifest: Any, node: Node, dice: Dice, pool: Pool) -> None:
    numbers = [n for n in (node, *_nodes(manifest)) if _is_number(n.value)]
    if not numbers:
        return _transplant(manifest, node, dice, pool)
    number = node if _is_number(node.value) else dice.pick(numbers)
    near = [number.value + 1, number.value - 1, number.value * 2] if dice.chance(0.5) else []
    return _set(manifest, number.path, dice.pick([*near, *NUMBERS]))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _rename(manifest: Any, node: Node, dice: Dice, pool: Pool) -> None:
    """Puts one of the manifest's own names where another stands."""
    if not isinstance(node.value, str):
        return _transplant(manifest, node, dice, pool)
    names = [n for s in sorted(SECTIONS) for n in manifest.get(s) or ()]
    topology = manifest.get("topology") or {}
    return _set(manifest, node.path, dice.pick([*names, *topology.get("groups", {}), "nobody"]))


def _repeat(manifest: Any, node: Node, dice: Dice, pool: Pool) -> None:
    parent = _parent(manifest, node.path)
    if isinstance(parent, list):
        parent.insert(dice.between(0, len(parent)), json.loads(json.dumps(node.value)))
    elif node.shape[-1] == "*":
        _set(manifest, (*node.path[:-1], f"{node.path[-1]}2"), node.value)
    else:
        _transplant(manifest, node, dice, pool)


def _reorder(manifest: Any, node: Node, dice: Dice, pool: Pool) -> None:
    parent = _parent(manifest, node.path)
    if isinstance(parent, list):
        parent.insert(dice.between(0, len(parent) - 1), parent.pop(int(node.path[-1])))
    else:
        _transplant(manifest, node, dice, pool)


def _spoil(manifest: Any, node: Node, dice: Dice, _pool: Pool) -> None:
    _set(manifest, node.path, dice.pick(JUNK))


def _name_constant(manifest: Any, node: Node, dice: Dice, pool: Pool) -> None:
    if _is_number(node.value):
        _set(manifest, node.path, "C")
        manifest["constants"] = {"C": node.value}
    else:
        _transplant(manifest, node, dice, pool)


Change = Callable[[Any, Node, Dice, Pool], None]
CHANGES: tuple[Change, ...] = (
    _infect, _infect, _infect, _infect, _infect, _infect, _infect, _infect, _infect, _infect,
    _transplant, _transplant, _transplant, _remove, _add, _add,
    _renumber, _renumber, _rename, _rename, _repeat, _reorder, _spoil, _name_constant,
)  # fmt: skip
