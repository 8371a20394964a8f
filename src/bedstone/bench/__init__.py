"""How fast packages run: steps, prompts and loads, timed beside what the machine itself can do."""
