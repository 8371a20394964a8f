"""The whole table: every topic's rows in the order their faults are reported."""

from bedstone.verify.bind import BIND_ROWS, PLACEMENT_ROWS
from bedstone.verify.buffers import BUFFER_SHAPE_ROWS
from bedstone.verify.calls import CALL_ROWS
from bedstone.verify.domains import DOMAIN_ROWS
from bedstone.verify.facts import (
    Facts,
    each_buffer,
    each_group,
    each_module,
    each_op,
    each_program,
    each_state,
    each_var,
)
from bedstone.verify.fills import DEALT_FILL_ROWS, FILL_ROWS
from bedstone.verify.format import CUT_ROWS, FORMAT_ROWS
from bedstone.verify.modules import MODULE_ROWS
from bedstone.verify.ops import OP_ROWS
from bedstone.verify.peers import EXPORT_ROWS, PEER_ROWS
from bedstone.verify.programs import PROGRAM_ROWS, PROGRAMS_ROWS
from bedstone.verify.rule import Each, Rows, rules_of
from bedstone.verify.shards import DEAL_ROWS, SHARD_ROWS
from bedstone.verify.states import STATE_ROWS
from bedstone.verify.topology import GROUP_ROWS
from bedstone.verify.unused import UNUSED_ROWS
from bedstone.verify.vars import AXIS_ROWS, DEALT_VAR_ROWS, VAR_ROWS

BUFFER_ROWS = (
    *BUFFER_SHAPE_ROWS,
    *DOMAIN_ROWS,
    *FILL_ROWS,
    *PLACEMENT_ROWS,
    *EXPORT_ROWS,
    *BIND_ROWS,
    *PEER_ROWS,
)

MANIFEST_ROWS: Rows[Facts] = (
    *FORMAT_ROWS,
    Each(each_var, VAR_ROWS),
    *AXIS_ROWS,
    Each(each_group, GROUP_ROWS),
    *CUT_ROWS,
    Each(each_state, STATE_ROWS),
    Each(each_state, SHARD_ROWS),
    Each(each_state, DEAL_ROWS),
    Each(each_var, DEALT_VAR_ROWS),
    *DEALT_FILL_ROWS,
    Each(each_buffer, BUFFER_ROWS),
    Each(each_module, MODULE_ROWS),
    Each(each_op, OP_ROWS),
    *PROGRAMS_ROWS,
    Each(each_program, (*PROGRAM_ROWS, *CALL_ROWS)),
    *UNUSED_ROWS,
)

RULES = tuple({rule.id: rule for rule in rules_of(MANIFEST_ROWS)}.values())
"""Every rule once, in the order of first report."""
