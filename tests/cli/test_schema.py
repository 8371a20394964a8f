import json

from bedstone.spec.codec import schema
from command_line import bedstone


def test_the_schema_is_printed_as_json():
    ended = bedstone("schema")
    assert ended.code == 0
    assert json.loads(ended.out) == schema()
