"""The engine: requests to steps, and back to tokens."""

from bedstone.serve.engine.engine import ThreadedEngine
from bedstone.serve.engine.options import Options

__all__ = ["Options", "ThreadedEngine"]
