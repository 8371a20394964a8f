from prove.kernel.conftest import kernel_cache, package

__all__ = ["kernel_cache", "package"]
