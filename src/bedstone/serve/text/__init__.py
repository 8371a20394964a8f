"""Tokens to what a client reads: text, reasoning, tool calls, log-probabilities.

Everything here is a function of the tokens alone and gives the same answer however they come.
"""
