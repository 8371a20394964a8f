"""Python Solutions, loaded as a candidate's process loads them."""

import tempfile
from pathlib import Path

from bedstone.prove.sandbox.load import load_entry
from bedstone.prove.write import build_request, write_sources
from bedstone.spec.dialect.solution import parse_solution
from flashinfer_bench.compile.runnable import Runnable, RunnableMetadata
from flashinfer_bench.data import plain


class PythonBuilder:
    def build(self, definition, solution):
        own = parse_solution(plain(solution)).require("solution")
        folder = Path(tempfile.mkdtemp(prefix="bedstone-"))
        loaded = load_entry(write_sources(own, folder), build_request(own, folder))
        metadata = RunnableMetadata(
            "python", definition.name, solution.name, loaded.destination_passing, definition
        )
        return Runnable(loaded.entry, metadata)
