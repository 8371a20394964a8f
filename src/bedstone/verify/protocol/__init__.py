"""What a serving loop may do with a manifest, read off its fills, batches and axes."""

from bedstone.verify.protocol.axes import AxisVar
from bedstone.verify.protocol.contract import (
    PROTOCOL_RULES,
    Protocol,
    check_protocol,
    protocol,
)
from bedstone.verify.protocol.programs import Chain, Shape
from bedstone.verify.protocol.roles import Role
from bedstone.verify.protocol.tables import LineTable, PageTable

__all__ = [
    "AxisVar",
    "Chain",
    "LineTable",
    "PROTOCOL_RULES",
    "PageTable",
    "Protocol",
    "Role",
    "Shape",
    "check_protocol",
    "protocol",
]
