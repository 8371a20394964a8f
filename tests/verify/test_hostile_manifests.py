"""Manifests written to cost more than they should, or to confuse whoever reads the faults."""

import json
import time

from bedstone.spec.codec import parse
from bedstone.verify import check
from verify.tiny_manifest import TINY, broken


def test_a_name_is_escaped_in_a_pointer() -> None:
    (fault,) = check(parse(broken(("/vars/a~1~b", {"max": 1}))))
    assert (fault.path, fault.objects) == ("/vars/a~1~0b", ("var a/~b",))


def test_a_message_lists_a_few_of_many_names() -> None:
    groups = {f"g{i:05}": 2 for i in range(2000)}
    shards = {"by": "position", "group": "nowhere"}
    states = {f"s{i:05}": {"bytes_per_token": 1, "shard": shards} for i in range(2000)}
    document = json.loads(broken()) | {"topology": {"groups": groups}, "states": states}
    unknown = [fault for fault in check(parse(json.dumps(document))) if fault.rule == "T3"]
    assert len(unknown) > 2000
    assert max(len(fault.message) for fault in unknown) < 250
    assert "and 1992 more" in unknown[0].message


def test_many_tensor_maps_of_one_parameter_take_linear_time() -> None:
    tensor_map = {"param": 2, "dtype": "u8", "dims": [16], "box": [16]}
    fields = [{"at": 128 * i, "tensormap": tensor_map} for i in range(5000)]
    pack = {"pack": {"size": 128 * len(fields), "fields": fields}}
    launch = TINY["ops"]["embed"]["impl"]["launches"][0]
    text = broken(
        ("/ops/embed/impl/launches/0", launch | {"params": [f"bytes<{128 * len(fields)}>"]}),
        ("/ops/embed/impl/launches/0/args", [pack]),
    )
    begin = time.process_time()
    assert {fault.rule for fault in check(parse(text))} == {"A9"}
    assert time.process_time() - begin < 2.0
