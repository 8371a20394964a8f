"""Step graphs of real model families."""
