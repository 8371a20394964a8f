"""What runs in a candidate's process: it loads the Solution, calls it and says how long that took.

Nothing said here decides alone: outputs are judged by the parent from shared memory, and times are
held against the parent's own clock. The checks below only name sooner what would fail anyway.
"""

import os
import socket
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import torch

from bedstone.prove.results import Expected, ResultError, as_tensor, named_results
from bedstone.prove.sandbox.arena import Arena, Place, Slot
from bedstone.prove.sandbox.device import Device, device_named, require_plain
from bedstone.prove.sandbox.load import Loaded, load_entry
from bedstone.prove.sandbox.tamper import Snapshot, snapshot
from bedstone.prove.sandbox.wire import Message, WireError, receive, send

_LONGEST_TRACE = 20_000


def run(channel: int, arena: int, log: int) -> None:
    """Serve a channel until it closes, then end the process; nothing returns from here."""
    os.setsid()
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    with socket.socket(fileno=channel) as asked:
        harness = _Harness(arena)
        with suppress(WireError):
            while True:
                request = receive(asked)
                reply = harness.answer(request)
                send(asked, {**reply, "id": request["id"]})
    # handlers a candidate left behind do not get to run
    os._exit(0)


class _Harness:
    """The candidate loaded, its tensors, and one call at a time."""

    def __init__(self, arena: int) -> None:
        self._descriptor = arena
        self._arena: Arena | None = None
        self._kind = "cpu"
        self._device: Device = device_named("cpu")
        self._slots: tuple[Slot, ...] = ()
        self._outputs: list[Expected] = []
        self._loaded: Loaded | None = None
        self._before: Snapshot = {}
        self._arguments: list[Any] = []
        self._bound: Callable[[], Any] | None = None
        self._inputs: dict[str, torch.Tensor] = {}
        self._targets: dict[str, torch.Tensor] = {}
        self._state: Mapping[str, Any] = {}
        self._results: dict[str, torch.Tensor] = {}
        self._slot: Slot | None = None

    def answer(self, request: Message) -> Message:
        """Do what a request asks; whatever goes wrong is an answer too."""
        do: dict[str, Callable[[Message], Message]] = {
            "open": self._open,
            "build": self._build,
            "prepare": self._prepare,
            "setup": self._setup,
            "call": self._call,
            "fetch": self._fetch,
            "nothing": lambda _: {},
        }
        try:
            return {"ok": True, **do[request["do"]](request)}
        except ResultError as error:
            return {"ok": False, "status": error.status, "message": str(error)}
        except BaseException as error:  # noqa: BLE001  (a candidate may raise anything, SystemExit too)
            status = "COMPILE_ERROR" if request["do"] == "build" else "RUNTIME_ERROR"
            message = f"{type(error).__name__}: {error}"
            text = traceback.format_exc()[-_LONGEST_TRACE:]
            return {"ok": False, "status": status, "message": message, "log": text}

    def _open(self, request: Message) -> Message:
        """Map the shared memory and learn what lies where."""
        self._arena = Arena(self._descriptor, request["size"])
        self._kind = request["device"]
        self._device = device_named(self._kind, request["flush"])
        self._slots = tuple(
            Slot(*(tuple(map(Place.of, half)) for half in slot)) for slot in request["slots"]
        )
        self._outputs = [
            Expected(name, dtype, None if shape is None else tuple(shape), target)
            for name, dtype, shape, target in request["outputs"]
        ]
        self._before = snapshot()
        return {}

    def _build(self, request: Message) -> Message:
        start = perf_counter_ns()
        self._loaded = load_entry(Path(request["folder"]), request["spec"], self._kind)
        return {"ns": perf_counter_ns() - start, "setup": self._loaded.setup is not None}

    def _prepare(self, request: Message) -> Message:
        """Lay out the arguments of the next call and push other data out of the caches."""
        arena, slot = self._require_open(), self._slots[request["slot"]]
        tensors = {p.name: self._device.load(arena.tensor(p)) for p in slot.inputs}
        given = {**tensors, **request["scalars"]}
        self._inputs = tensors
        self._arguments = [given[name] for name in request["order"]]
        targets = {p.name: self._device.load(arena.tensor(p)) for p in slot.outputs}
        for expected in self._outputs:
            if expected.target is not None:
                targets[expected.name] = tensors[expected.target]
        self._targets = targets
        self._slot = slot
        self._state = {}
        self._results = {}
        self._bound = self._bind()
        self._device.flush()
        self._device.settle()
        return {}

    def _bind(self) -> Callable[[], Any] | None:
        """A kernel's launch, laid out before it is timed."""
        loaded = self._require_loaded()
        return None if loaded.bind is None else loaded.bind(*self._passed(loaded))

    def _passed(self, loaded: Loaded) -> list[Any]:
        """The arguments of a call: inputs, and where it is to write to if it wants to be told."""
        if not loaded.destination_passing:
            return self._arguments
        own = [expected.name for expected in self._outputs if expected.target is None]
        return [*self._arguments, *(self._targets[name] for name in own)]

    def _setup(self, _request: Message) -> Message:
        setup = self._require_loaded().setup
        if setup is None:
            return {"ns": 0}
        start = perf_counter_ns()
        state = setup(*self._arguments)
        self._device.settle()
        taken = perf_counter_ns() - start
        if state is not None and not isinstance(state, Mapping):
            raise ResultError("RUNTIME_ERROR", "`setup` returns neither a dict nor None")
        self._state = dict(state or {})
        return {"ns": taken}

    def _call(self, _request: Message) -> Message:
        loaded = self._require_loaded()
        arguments, state = self._passed(loaded), self._state
        threads = threading.active_count()
        timing = self._device.time(self._bound or (lambda: loaded.entry(*arguments, **state)))
        hacks = self._before_and_after(threads)
        returned = None if loaded.destination_passing else timing.result
        self._results = self._checked(returned, given=loaded.destination_passing)
        spans = {"before_ns": timing.before_ns, "beside_ns": timing.beside_ns}
        return {"ns": timing.ns, **spans, "hacks": hacks}

    def _before_and_after(self, threads: int) -> list[str]:
        changed = [f"replaced `{name}`" for name, it in snapshot().items()
                   if self._before.get(name) != it]  # fmt: skip
        if threading.active_count() > threads:
            changed.append("left a thread running")
        return changed

    def _checked(self, returned: object, *, given: bool) -> dict[str, torch.Tensor]:
        """Each result as exactly what was declared."""
        if given:
            return self._targets
        named = named_results(returned, self._outputs)
        return {
            expected.name: self._targets[expected.name]
            if expected.target is not None
            else require_plain(as_tensor(named[expected.name], expected), expected.name, self._kind)
            for expected in self._outputs
        }

    def _fetch(self, _request: Message) -> Message:
        """Copy the results to where the parent reads them."""
        arena = self._require_open()
        slot = self._slot
        if slot is None:
            raise ResultError("RUNTIME_ERROR", "there was no call")
        self._device.settle()
        for place in slot.outputs:
            self._device.store(self._results[place.name], arena.tensor(place))
        for place in slot.inputs:
            self._device.store(self._inputs[place.name], arena.tensor(place))
        return {}

    def _require_open(self) -> Arena:
        if self._arena is None:
            raise ResultError("RUNTIME_ERROR", "the shared memory is not open")
        return self._arena

    def _require_loaded(self) -> Loaded:
        if self._loaded is None:
            raise ResultError("RUNTIME_ERROR", "nothing is loaded")
        return self._loaded
