"""Decoders of the shapes that hold one word or one number."""

import math
from collections.abc import Callable
from typing import Any

from bedstone.spec.fault import shown
from bedstone.spec.manifest import ParamType
from bedstone.spec.misfit import MisfitError, backticked, misfit
from bedstone.spec.number import round_f32
from bedstone.spec.param import parse_param
from bedstone.spec.shape import Boolean, Choice, Integer, Number, Param, Text

Decoder = Callable[[object], Any]
"""Gives the typed value of a JSON value, or raises `MisfitError`."""


def integer(shape: Integer) -> Decoder:
    """A double never serves as an integer, nor does a boolean."""
    low, high = shape.low, shape.high
    expected = f"an integer from {low} to {high}"

    def decode(value: object) -> int:
        if type(value) is not int or not low <= value <= high:
            misfit(expected, value)
        return value

    return decode


def number(shape: Number) -> Decoder:
    """Any number serves, rounded; one that rounds to an infinity does not."""
    rounded = round_f32 if shape.single else float
    expected = "a number within float32" if shape.single else "a finite number"

    def decode(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            misfit("a number", value)
        try:
            result = rounded(value)
        except OverflowError:
            misfit(expected, value)
        if not math.isfinite(result):
            misfit(expected, value)
        return result

    return decode


def text(_shape: Text) -> Decoder:
    """Any string."""

    def decode(value: object) -> str:
        if type(value) is not str:
            misfit("a string", value)
        return value

    return decode


def boolean(_shape: Boolean) -> Decoder:
    """Neither 0 nor 1 serves."""

    def decode(value: object) -> bool:
        if not isinstance(value, bool):
            misfit("a boolean", value)
        return value

    return decode


def choice(shape: Choice) -> Decoder:
    """A word, never an object around it (`{"input": null}`), which the reference lets pass."""
    words = {word: word for word in shape.words}
    expected = f"one of {backticked(words)}"

    def decode(value: object) -> str:
        if type(value) is dict:
            raise MisfitError("P11", f"expected {expected} as a string, found an object")
        if type(value) is not str:
            misfit(expected, value)
        word = words.get(value)
        if word is None:
            raise MisfitError(shape.rule, f"expected {expected}, found `{shown(value)}`")
        return word

    return decode


def param(_shape: Param) -> Decoder:
    """A parameter type's string, in any spelling the reader takes."""

    def decode(value: object) -> ParamType:
        if type(value) is not str:
            misfit("a parameter type as a string", value)
        try:
            return parse_param(value)
        except ValueError as error:
            raise MisfitError("P8", str(error)) from None

    return decode
