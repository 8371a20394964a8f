"""The engine: requests to steps, and back to tokens."""

from bedstone.serve.engine.core import Options
from bedstone.serve.engine.engine import ThreadedEngine

__all__ = ["Options", "ThreadedEngine"]
