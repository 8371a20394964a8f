"""Which of a server's loggers are heard."""

from collections.abc import Mapping

from bedstone.cli.serve_options import Log

HEARD: Mapping[Log, tuple[str, ...]] = {
    Log.off: (),
    Log.rates: ("rates",),
    Log.requests: ("rates", "requests"),
}
"""Of each word of `--log`."""
