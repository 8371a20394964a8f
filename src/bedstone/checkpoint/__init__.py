"""Readers of checkpoints: headers, config, tokenizer; no weights copied."""
