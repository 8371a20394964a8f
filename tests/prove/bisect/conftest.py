from prove.kernel.conftest import package

__all__ = ["package"]
