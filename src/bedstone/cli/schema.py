"""`bedstone schema`: the JSON Schema of a manifest."""

import json

from bedstone.spec.codec import schema


def command() -> None:
    """Print the JSON Schema of a v7 manifest."""
    print(json.dumps(schema(), indent=2))
