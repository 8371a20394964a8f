"""Each shape of the grammar by itself: what is written reads back and fits the schema."""

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bedstone.spec.decode import decoder
from bedstone.spec.encode import encoder
from bedstone.spec.grammar import DEFINITIONS
from bedstone.spec.misfit import MisfitError
from bedstone.spec.schema import schema
from bedstone.spec.shape import Ref
from bedstone.spec.text import parse_json
from manifest_strategies import strategy

EXAMPLES = settings(max_examples=30, derandomize=True, suppress_health_check=list(HealthCheck))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(-9, 9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_what_is_written_reads_back_and_fits_the_schema(name: str) -> None:
    read, write = decoder(Ref(name)), encoder(Ref(name))
    validator = jsonschema.Draft202012Validator(
        {"$ref": f"#/$defs/{name}", "$defs": schema()["$defs"]}
    )

    @EXAMPLES
    @given(strategy(Ref(name)))
    def check(value: object) -> None:
        text = write(value, "\n")
        json = parse_json(text)
        validator.validate(json)
        assert read(json) == value
        assert write(read(json), "\n") == text

    check()


@pytest.mark.parametrize("name", DEFINITIONS)
def test_any_json_value_is_read_or_refused(name: str) -> None:
    read, write = decoder(Ref(name)), encoder(Ref(name))

    @EXAMPLES
    @given(JSON)
    def check(value: object) -> None:
        try:
            typed = read(value)
        except MisfitError:
            return
        assert read(parse_json(write(typed, "\n"))) == typed

    check()
