"""What `bedstone serve` writes on stderr while it answers."""

import logging
from collections.abc import Mapping

from bedstone.cli.serve_options import Log

ROOT = "bedstone.serve"
LINE = "%(asctime)s %(message)s"
TIME = "%Y-%m-%dT%H:%M:%S"
HEARD: Mapping[Log, tuple[str, ...]] = {
    Log.off: (),
    Log.rates: ("rates",),
    Log.requests: ("rates", "requests"),
}
"""Which of the server's own loggers are; its errors always are."""


def write_log(log: Log) -> None:
    """Write what was asked for, a line each with its time, from now on."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(LINE, TIME))
    root = logging.getLogger(ROOT)
    root.handlers = [handler]
    root.propagate = False
    for name in HEARD[log]:
        logging.getLogger(f"{ROOT}.{name}").setLevel(logging.INFO)
