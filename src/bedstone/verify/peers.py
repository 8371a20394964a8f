"""Export and peers: memory that other ranks reach, and the buffers that hold its addresses."""

from collections.abc import Iterator
from dataclasses import dataclass

from bedstone.spec.manifest import Buffer
from bedstone.verify.facts import Named
from bedstone.verify.rule import Each, Finding, Place, Rows, Rule
from bedstone.verify.topology import GROUP_USE_ROWS, GroupUse


@dataclass(frozen=True, slots=True)
class PeerOf:
    """What a peer buffer holds the addresses of."""

    peer: Named[Buffer]
    target: str

    @property
    def place(self) -> Place:
        """The place of the target's name."""
        return self.peer.place.inner("`of`", "/of")

    @property
    def buffer(self) -> Buffer | None:
        """The buffer of that name, when no state shares it and it is another."""
        if self.target == self.peer.name or self.is_state:
            return None
        return self.peer.facts.manifest.buffers.get(self.target)

    @property
    def is_buffer(self) -> bool:
        """Whether a buffer has the name."""
        return self.target in self.peer.facts.manifest.buffers

    @property
    def is_state(self) -> bool:
        """Whether a state has the name."""
        return self.target in self.peer.facts.manifest.states


def source_not_exported(buffer: Named[Buffer]) -> Iterator[Finding]:
    """A source, which is gone after load, is not exported."""
    if buffer.value.kind == "source" and buffer.value.export:
        yield buffer.place.finding(
            "is a source and exported, expected one of the two", at="/export"
        )


def as_peer(buffer: Named[Buffer]) -> Iterator[Named[Buffer]]:
    """The buffer, when it holds peers' addresses."""
    if buffer.value.kind == "peer":
        yield buffer


def peer_not_exported(peer: Named[Buffer]) -> Iterator[Finding]:
    """A peer buffer is not itself exported."""
    if peer.value.export:
        yield peer.place.finding(
            "is a peer buffer and exported, expected one of the two", at="/export"
        )


def peer_holds_addresses(peer: Named[Buffer]) -> Iterator[Finding]:
    """A peer buffer holds addresses, in u64."""
    if peer.value.dtype != "u64":
        yield peer.place.finding(
            f"is a peer buffer of {peer.value.dtype}, expected u64 addresses", at="/dtype"
        )


def peer_has_no_domain(peer: Named[Buffer]) -> Iterator[Finding]:
    """A peer buffer has no domain: the runtime fills it."""
    if peer.value.domain is not None:
        yield peer.place.finding("is a peer buffer and has a domain, expected none", at="/domain")


def peer_names_target(peer: Named[Buffer]) -> Iterator[Finding]:
    """A peer buffer names what it holds the addresses of."""
    if peer.value.of is None:
        yield peer.place.finding(
            "is a peer buffer without `of`, expected an exported buffer or a state"
        )


def as_peer_of(peer: Named[Buffer]) -> Iterator[PeerOf]:
    """What the peer buffer names, if anything."""
    if peer.value.of is not None:
        yield PeerOf(peer, peer.value.of)


def peer_of_another(of: PeerOf) -> Iterator[Finding]:
    """A peer buffer does not hold its own addresses."""
    if of.target == of.peer.name:
        yield of.place.finding("names the peer buffer itself, expected another")


def peer_of_one_thing(of: PeerOf) -> Iterator[Finding]:
    """The name is not shared by a buffer and a state."""
    if of.target != of.peer.name and of.is_buffer and of.is_state:
        yield of.place.finding(
            f"names `{of.target}`, which is both a buffer and a state",
            f"buffer {of.target}",
            f"state {of.target}",
        )


def peer_not_of_peer(of: PeerOf) -> Iterator[Finding]:
    """A peer buffer holds no addresses of a peer buffer."""
    if of.buffer is not None and of.buffer.kind == "peer":
        yield of.place.finding(
            f"names peer buffer `{of.target}`, expected memory of the runtime's",
            f"buffer {of.target}",
        )


def peer_of_exported(of: PeerOf) -> Iterator[Finding]:
    """A buffer whose addresses are handed out is exported."""
    if of.buffer is not None and of.buffer.kind != "peer" and not of.buffer.export:
        yield of.place.finding(
            f"names buffer `{of.target}`, expected one with `export`", f"buffer {of.target}"
        )


def peer_of_runtime_state(of: PeerOf) -> Iterator[Finding]:
    """A state whose addresses are handed out is the runtime's, not the host's."""
    state = of.peer.facts.manifest.states.get(of.target)
    if state is not None and not of.is_buffer and state.host is not None:
        yield of.place.finding(
            f"names host state `{of.target}`, expected memory of the runtime's",
            f"state {of.target}",
        )


def peer_target_known(of: PeerOf) -> Iterator[Finding]:
    """The name is a buffer's or a state's."""
    if not of.is_buffer and not of.is_state:
        yield of.place.finding(
            f"names unknown `{of.target}`, expected a buffer or a state", f"target {of.target}"
        )


def peer_names_group(peer: Named[Buffer]) -> Iterator[Finding]:
    """A peer buffer names the group its addresses are indexed by."""
    if peer.value.group is None:
        yield peer.place.finding("is a peer buffer without `group`, expected a topology group")


def peer_group(peer: Named[Buffer]) -> Iterator[GroupUse]:
    """The group the peer buffer names, if any."""
    if peer.value.group is not None:
        yield GroupUse(peer.facts, peer.place.inner("`group`", "/group"), peer.value.group)


def address_per_member(peer: Named[Buffer]) -> Iterator[Finding]:
    """A peer buffer has one address for each member of its group."""
    shape, group = peer.value.shape, peer.value.group
    members = None if group is None else peer.facts.groups.get(group)
    if members is not None and shape != (members,):
        yield peer.place.finding(
            f"is a peer buffer of shape {list(shape)}, expected [{members}], an address for each "
            f"member of `{group}`",
            f"group {group}",
            at="/shape",
        )


def of_only_on_peers(buffer: Named[Buffer]) -> Iterator[Finding]:
    """Only a peer buffer has `of`."""
    if buffer.value.kind != "peer" and buffer.value.of is not None:
        yield buffer.place.finding(
            f"has `of` and is of kind `{buffer.value.kind}`, expected a peer buffer", at="/of"
        )


def group_only_on_peers(buffer: Named[Buffer]) -> Iterator[Finding]:
    """Only a peer buffer has `group`."""
    if buffer.value.kind != "peer" and buffer.value.group is not None:
        yield buffer.place.finding(
            f"has `group` and is of kind `{buffer.value.kind}`, expected a peer buffer", at="/group"
        )


EXPORT_ROWS: Rows[Named[Buffer]] = (Rule("X15", "peers", source_not_exported),)
PEER_ROWS: Rows[Named[Buffer]] = (
    Each(
        as_peer,
        (
            Rule("X1", "peers", peer_not_exported),
            Rule("X2", "peers", peer_holds_addresses),
            Rule("X3", "peers", peer_has_no_domain),
            Rule("X4", "peers", peer_names_target),
            Each(
                as_peer_of,
                (
                    Rule("X5", "peers", peer_of_another),
                    Rule("X6", "peers", peer_of_one_thing),
                    Rule("X7", "peers", peer_not_of_peer),
                    Rule("X8", "peers", peer_of_exported),
                    Rule("X9", "peers", peer_of_runtime_state),
                    Rule("X10", "peers", peer_target_known),
                ),
            ),
            Rule("X11", "peers", peer_names_group),
            Each(peer_group, GROUP_USE_ROWS),
            Rule("X12", "peers", address_per_member),
        ),
    ),
    Rule("X13", "peers", of_only_on_peers),
    Rule("X14", "peers", group_only_on_peers),
)
