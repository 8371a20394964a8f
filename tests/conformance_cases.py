"""The conformance cases: manifests, mutations of them, and the reference reader's verdicts."""

import copy
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent / "conformance"
ACCEPTED = tuple(sorted(path.stem for path in (ROOT / "accept").glob("*.json")))


@dataclass(frozen=True, slots=True)
class Case:
    """One manifest and what the reference reader says of it.

    `rule` is the rule the case exercises, `messages` the reference's diagnostics in order.
    """

    name: str
    rule: str
    accepted: bool
    messages: tuple[str, ...]
    text: str

    @property
    def newer(self) -> bool:
        """Whether the schema accepts what the reference, which is older, refuses."""
        return self.name.endswith("is-newer-than-this-oracle")


def accepted_text(name: str) -> str:
    """The text of an accepted manifest, such as `02_impl`."""
    return (ROOT / "accept" / f"{name}.json").read_text(encoding="utf-8")


def normalized_text(name: str) -> str:
    """The same manifest as the reference serializes it."""
    return (ROOT / "normalized" / f"{name}.json").read_text(encoding="utf-8")


def patched(document: Any, mutation: list[dict[str, Any]]) -> Any:
    """A copy of `document` after RFC 6902 `add`, `replace`, `remove`, `copy` and `move`."""
    document = copy.deepcopy(document)
    for change in mutation:
        match change["op"]:
            case "add" | "replace":
                value = copy.deepcopy(change["value"])
            case "copy":
                value = copy.deepcopy(_get(document, _parts(change["from"])))
            case "move":
                value = _remove(document, _parts(change["from"]))
        if change["op"] == "remove":
            _remove(document, _parts(change["path"]))
        else:
            _put(document, _parts(change["path"]), value, replace=change["op"] == "replace")
    return document


@cache
def cases(stored: str = "cases.jsonl") -> tuple[Case, ...]:
    """Every stored case; those of `found.jsonl` were found by fuzzing."""
    with (ROOT / stored).open(encoding="utf-8") as lines:
        return tuple(_case(json.loads(line)) for line in lines)


def _case(record: dict[str, Any]) -> Case:
    return Case(
        name=record["name"],
        rule=record["rule"],
        accepted=record["verdict"] == "accept",
        messages=tuple(record["messages"]),
        text=_text(record),
    )


def _text(record: dict[str, Any]) -> str:
    if "text" in record:
        return str(record["text"])
    if "manifest" in record:
        return json.dumps(record["manifest"])
    return json.dumps(patched(json.loads(accepted_text(record["base"])), record["mutation"]))


def _parts(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _get(document: Any, parts: list[str]) -> Any:
    for part in parts:
        document = document[int(part) if isinstance(document, list) else part]
    return document


def _put(document: Any, parts: list[str], value: Any, *, replace: bool) -> None:
    parent, last = _get(document, parts[:-1]), parts[-1]
    if isinstance(parent, dict):
        if replace and last not in parent:
            raise KeyError(last)
        parent[last] = value
    elif replace:
        parent[int(last)] = value
    else:
        parent.insert(len(parent) if last == "-" else int(last), value)


def _remove(document: Any, parts: list[str]) -> Any:
    parent, last = _get(document, parts[:-1]), parts[-1]
    return parent.pop(int(last) if isinstance(parent, list) else last)
