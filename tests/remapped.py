"""Sequences that only fit in turn: sixteen pages and six slots at first, all of one size."""

from bedstone.runtime.session import Session
from bedstone.serve.engine.options import Options
from driven import Driven
from served_toy import answers

TOKENS, PAGE, SEQUENCES = 64, 4, 4
"""With the null line and a spare one there are six slots at first."""

MOST = TOKENS + 4 * PAGE
"""Tokens of a sequence that is alone: four slots are given up for it."""

AT_ONCE = 10
"""Sequences of a page each, which that is enough for where memory goes to slots."""

SHAPE = {"page": PAGE, "width": MOST // PAGE, "groups": AT_ONCE, "folded": True}
LOADED = {"tokens": TOKENS, "sequences": SEQUENCES, "remaps": True}


def serve_by_turns(session: Session, *, reuse: bool, turns: int, host_bytes: int = 0) -> None:
    """Many short sequences and a long one, again and again; then one that has the states alone.

    Steps were recorded before the memory of what they reach was there. One prompt comes each turn,
    from the host's memory if there is some.
    """
    engine = Driven(session, Options(reuse=reuse, host_bytes=host_bytes))
    most = 0
    for turn in range(turns):
        asked = {f"s{turn}.{i}": ([1 + i], 4) for i in range(AT_ONCE)}
        asked |= {f"t{turn}.{i}": ([i, 2, 3], 30 + i) for i in range(4)}
        asked[f"again{turn}"] = ([(5 * at) % 90 for at in range(30)], 6)
        asked[f"l{turn}"] = ([(7 * at + turn) % 90 for at in range(MOST - 30)], 30)
        for name, (prompt, count) in asked.items():
            engine.submit(name, prompt, count)
        while engine.core.busy:
            engine.turn()
            most = max(most, len(engine.core._rows))
        for name, (prompt, count) in asked.items():
            assert engine.tokens[name] == answers(prompt, count, folded=True), name
    assert most > SEQUENCES + 1
    assert engine.core.stats().remaps >= turns
    assert (engine.core.stats().woken > 0) == (host_bytes > 0)
    engine.core.close()
    prompt = [(3 * at) % 90 for at in range(TOKENS - 20)]
    assert list(session.generate(prompt, 9)) == answers(prompt, 9, folded=True)
