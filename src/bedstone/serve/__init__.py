"""Requests to steps."""
