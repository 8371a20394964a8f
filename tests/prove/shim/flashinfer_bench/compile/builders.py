"""Solutions loaded as a candidate's process loads them."""

import os
import tempfile
from pathlib import Path

from bedstone.prove.results import ResultError
from bedstone.prove.sandbox.load import load_entry
from bedstone.prove.write import build_request, write_sources
from bedstone.spec.dialect.solution import parse_solution
from flashinfer_bench.compile.builder import BuildError
from flashinfer_bench.compile.runnable import Runnable, RunnableMetadata
from flashinfer_bench.data import plain


class Builder:
    kind = "python"
    languages = ("python",)
    bindings = (None,)

    def can_build(self, solution):
        spec = plain(solution)["spec"]
        return spec["language"] in self.languages and spec.get("binding") in self.bindings

    def build(self, definition, solution):
        own = parse_solution(plain(solution)).require("solution")
        folder = Path(tempfile.mkdtemp(prefix="bedstone-"))
        cache = Path(os.environ.get("FIB_CACHE_PATH", folder))
        before = set(cache.glob("*.so"))
        try:
            loaded = load_entry(write_sources(own, folder), build_request(own, cache))
        except ResultError as error:
            raise BuildError(str(error)) from error
        made = set(cache.glob("*.so")) - before
        metadata = RunnableMetadata(
            self.kind, definition.name, solution.name, loaded.destination_passing, definition
        )
        return Runnable(loaded.entry, metadata, lambda: [path.unlink() for path in made])


class PythonBuilder(Builder):
    pass


class TVMFFIBuilder(Builder):
    kind, languages, bindings = "tvm_ffi", ("cuda", "cpp"), (None, "tvm-ffi")
