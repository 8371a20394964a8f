"""What a cold process imports before its first token: every module costs it time."""

import json
import subprocess
import sys

from bedstone.spec.codec import serialize
from bedstone.spec.package import KERNELS, MANIFEST
from runtime_toy import toy_parts

SPARED = {
    "bedstone.build",
    "bedstone.checkpoint.hf",
    "bedstone.checkpoint.tokenizer",
    "bedstone.runtime.cuda",
    "bedstone.runtime.together",
    "bedstone.target.hardware",
    "bedstone.target.toolchain",
    "bedstone.verify.table",
    "concurrent.futures",
    "importlib.resources",
    "jinja2",
    "logging",
    "ml_dtypes",
    "subprocess",
    "tempfile",
    "tokenizers",
    "tomllib",
    "torch",
}


def test_a_load_and_a_first_token_import_nothing_that_they_do_not_use(tmp_path, cache):
    package = tmp_path / "package"
    (package / KERNELS).mkdir(parents=True)
    (package / MANIFEST).write_text(serialize(toy_parts(package / KERNELS, cache).manifest))
    program = (
        "import sys, json\n"
        "from bedstone.runtime.generate import Generator\n"
        "from bedstone.runtime.load import load\n"
        f"with load({str(package)!r}, cache={str(tmp_path / 'cache')!r}, threads=1) as session:\n"
        "    Generator(session).prefill([7, 8])\n"
        "print(json.dumps(sorted(sys.modules)))\n"
    )
    for _ in range(2):  # the first compiles the replayer and comes to a verdict
        run = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
    assert SPARED & set(json.loads(run.stdout)) == set()
