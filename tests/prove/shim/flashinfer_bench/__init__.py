"""Our classes under FlashInfer-Bench's names, for its own tests."""
