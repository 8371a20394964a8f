from flashinfer_bench.data import *  # noqa: F403
