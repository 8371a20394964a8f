"""A radix tree over token ids whose nodes carry marks, each findable from above."""

from collections.abc import Iterator
from enum import IntEnum


class Mark(IntEnum):
    """What a node has: state on the device, state on the host, or both."""

    RESIDENT = 0
    PARKED = 1


class Node:
    """The end of a path of `end` tokens, of which `edge` are those below its parent's.

    `below` are, of each mark, the children with a node that has it, by first token.
    """

    __slots__ = ("below", "children", "edge", "end", "marks", "parent")

    def __init__(self, parent: "Node | None", edge: tuple[int, ...]) -> None:
        self.parent = parent
        self.edge = edge
        self.end: int = len(edge) + (parent.end if parent else 0)
        self.children: dict[int, Node] = {}
        self.marks: set[Mark] = set()
        self.below: tuple[dict[int, Node], dict[int, Node]] = ({}, {})

    def has(self, mark: Mark) -> bool:
        """Whether it or a node below has the mark."""
        return mark in self.marks or bool(self.below[mark])

    def nearest(self, mark: Mark) -> "Node":
        """Itself or the first found below it with the mark, which one of them has."""
        node = self
        while mark not in node.marks:
            node = next(iter(node.below[mark].values()))
        return node

    def above(self) -> "Iterator[Node]":
        """Those it lies below, from its parent up."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def adopt(self, child: "Node") -> None:
        """Take a child, in place of one that has its first token and the same marks."""
        first = child.edge[0]
        child.parent = self
        self.children[first] = child
        for mark in Mark:
            if child.has(mark):
                self.below[mark][first] = child


class Radix:
    """Nodes at the ends of marked paths and where such paths part."""

    def __init__(self) -> None:
        self._root = Node(None, ())

    def walk(self, tokens: tuple[int, ...]) -> Iterator[tuple[Node, int]]:
        """The nodes on the way of `tokens`, each with how many tokens it shares with them.

        That is all of the node's, save for the last one, whose edge may part from them.
        """
        node, at = self._root, 0
        while at == node.end < len(tokens) and tokens[at] in node.children:
            node = node.children[tokens[at]]
            at += _shared(node.edge, tokens, at)
            yield node, at

    def put(self, tokens: tuple[int, ...]) -> Node:
        """The node at the end of `tokens`, which the tree has from now on. Mark it."""
        last, at = self._root, 0
        for node, shared in self.walk(tokens):
            last, at = node, shared
        if at < last.end and last.parent:
            last = _split(last.parent, last, last.end - at)
        if at < len(tokens):
            parent, last = last, Node(last, tokens[at:])
            parent.adopt(last)
        return last

    def mark(self, node: Node, mark: Mark) -> None:
        """The node has the mark from now on."""
        node.marks.add(mark)
        child = node
        for parent in node.above():
            parent.below[mark][child.edge[0]] = child
            child = parent

    def unmark(self, node: Node, mark: Mark) -> None:
        """The node has the mark no longer; what then leads nowhere is gone."""
        node.marks.remove(mark)
        child = node
        for parent in node.above():
            if child.has(mark):
                break
            del parent.below[mark][child.edge[0]]
            child = parent
        self._tidy(node)

    def _tidy(self, node: Node) -> None:
        parent = node.parent
        if parent is None or node.marks or len(node.children) > 1:
            return
        if node.children:
            _join(parent, node, next(iter(node.children.values())))
        else:
            del parent.children[node.edge[0]]
            self._tidy(parent)


def _split(parent: Node, node: Node, below: int) -> Node:
    """A new node on the edge from one to another, `below` tokens above its end."""
    cut = len(node.edge) - below
    upper = Node(parent, node.edge[:cut])
    node.edge = node.edge[cut:]
    upper.adopt(node)
    parent.adopt(upper)
    return upper


def _join(parent: Node, node: Node, child: Node) -> None:
    """The child takes the place of a node that is nothing but on its way."""
    child.edge = node.edge + child.edge
    parent.adopt(child)


def _shared(edge: tuple[int, ...], tokens: tuple[int, ...], at: int) -> int:
    """How many tokens of an edge are those from `at` on; by halves, as slices compare fast."""
    same, most = 0, min(len(edge), len(tokens) - at)
    if edge[:most] == tokens[at : at + most]:
        return most
    while most - same > 1:
        middle = (same + most) // 2
        if edge[same:middle] == tokens[at + same : at + middle]:
            same = middle
        else:
            most = middle
    return same
