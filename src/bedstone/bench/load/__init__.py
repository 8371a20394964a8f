"""Load on an OpenAI-compatible server: what is asked, and when its answers came."""
