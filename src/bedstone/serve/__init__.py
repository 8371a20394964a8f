"""Many requests, one manifest: admission, steps, and the OpenAI API."""
