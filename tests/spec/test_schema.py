"""The generated schema against the published one, and the codec against the schema."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings

from bedstone.spec.codec import parse, schema, serialize
from bedstone.spec.manifest import Manifest
from conformance_cases import ACCEPTED, normalized_text
from manifest_strategies import manifests

PUBLISHED = json.loads(
    (Path(__file__).parents[1] / "golden/manifest-v7.schema.json").read_text(encoding="utf-8")
)
VALIDATOR = jsonschema.Draft202012Validator(PUBLISHED)


def undescribed(json_schema: Any) -> Any:
    if isinstance(json_schema, dict):
        return {
            key: undescribed(value)
            for key, value in json_schema.items()
            if not (key == "description" and isinstance(value, str))
        }
    if isinstance(json_schema, list):
        return [undescribed(value) for value in json_schema]
    return json_schema


def test_equals_the_published_schema_but_for_descriptions() -> None:
    assert undescribed(schema()) == undescribed(PUBLISHED)


def test_is_itself_a_valid_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("name", ACCEPTED)
def test_admits_every_normalized_manifest(name: str) -> None:
    VALIDATOR.validate(json.loads(normalized_text(name)))


@pytest.mark.slow
@settings(max_examples=60, derandomize=True, suppress_health_check=list(HealthCheck))
@given(manifests())
def test_admits_whatever_is_serialized(manifest: Manifest) -> None:
    text = serialize(manifest)
    VALIDATOR.validate(json.loads(text))
    assert serialize(parse(text)) == text
