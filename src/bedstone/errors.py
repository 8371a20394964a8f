"""The error tree, grouped by who has to act.

Each message names the object in backticks and says what was expected and what was found. The
command line turns any `BedstoneError` into one line on stderr and the exit code the class carries.
"""


class BedstoneError(Exception):
    """An error with one clear cause and someone who can act on it."""

    exit_code = 2


class ManifestError(BedstoneError):
    """Whoever wrote the manifest must act: it does not parse or breaks a rule."""


class KernelError(BedstoneError):
    """Whoever shipped the kernels must act: a module is missing, changed or of another ABI."""


class WeightError(BedstoneError):
    """Whoever shipped the checkpoint must act: its files, tensors or config are not usable."""


class TargetError(BedstoneError):
    """The machine and the target disagree: a compiler, a feature or a kernel is missing."""

    exit_code = 3


class DefinitionError(BedstoneError):
    """Whoever wrote a Definition, Solution or Workload must act."""


class CallerError(BedstoneError):
    """The caller must act: an argument is unknown, missing or out of range."""


class CapacityError(BedstoneError):
    """The caller asked for more than the declared or reserved capacity."""


class DeviceError(BedstoneError):
    """The device or its driver failed."""

    exit_code = 3
