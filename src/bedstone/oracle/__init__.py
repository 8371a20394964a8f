"""Slow, obvious NumPy interpreters of step graphs and schedules."""
