"""Loads a verified manifest and runs it; knows no model."""
