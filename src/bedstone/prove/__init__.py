"""A Solution against its Definition: inputs made, outputs judged, calls timed, outcomes kept.

What runs code needs PyTorch; what reads and ranks Traces, and `apply` while it is off, does not.
"""
