"""Traces as one page of HTML: times by Workload against the least the device could take.

`facts` says what is drawn, `emit` draws it as SVG. The page needs no script and nothing from
elsewhere.
"""

from bedstone.prove.page.emit import emit_page

__all__ = ["emit_page"]
