"""What a server writes on stderr while it answers."""

import logging
from collections.abc import Iterable

ROOT = "bedstone.serve"
LINE = "%(asctime)s %(message)s"
TIME = "%Y-%m-%dT%H:%M:%S"


def write_log(heard: Iterable[str]) -> None:
    """Write a line each with its time, from now on, of those of the server's own loggers.

    Its errors are always written.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(LINE, TIME))
    root = logging.getLogger(ROOT)
    root.handlers = [handler]
    root.propagate = False
    for name in heard:
        logging.getLogger(f"{ROOT}.{name}").setLevel(logging.INFO)
