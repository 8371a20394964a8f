"""How a bench is run, over our configuration."""

from bedstone.errors import CallerError
from bedstone.prove.config import Config
from bedstone.spec.workload import Tolerance


class BenchmarkConfig:
    def __init__(
        self, warmup_runs=10, iterations=50, num_trials=3, rtol=1e-2, atol=1e-2, log_dir=""
    ):
        try:
            self.own = Config(
                trials=num_trials, warmup=warmup_runs, iterations=iterations,
                tolerance=Tolerance(rtol, atol, spread=float("inf")),
            )  # fmt: skip
        except CallerError as error:
            raise ValueError(str(error)) from error
        self.log_dir = log_dir

    @property
    def warmup_runs(self):
        return self.own.warmup

    @property
    def iterations(self):
        return self.own.iterations

    @property
    def num_trials(self):
        return self.own.trials

    @property
    def rtol(self):
        return self.own.tolerance.rtol

    @property
    def atol(self):
        return self.own.tolerance.atol
