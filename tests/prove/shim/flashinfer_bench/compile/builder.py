"""What a build that fails raises."""


class BuildError(RuntimeError):
    pass
