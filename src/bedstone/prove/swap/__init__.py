"""Whether one package may take another's place: evidence, and a verdict by rules."""
