"""A CUDA driver whose device is this process's memory, as late as a real one may be.

What is put into a stream happens when somebody waits for it and not before, so whoever reuses
memory too early finds out. Kernels are Python functions over addresses.
"""

import ctypes
import mmap
import threading
from dataclasses import dataclass, field

import numpy as np

from bedstone.runtime.cuda.driver import CudaError, Facts

GRANULE = 2**16
CUBIN = (
    b"\x7fELF\x02\x01\x01\0\x08" + bytes(9) + (190).to_bytes(2, "little")
    + bytes(29) + b"\x5a" + bytes(14)
)  # fmt: skip
"""A cubin for 9.0 without sections; what follows it is a fake's own."""

HOPPER = Facts("Fake", (9, 0), (13, 0), tensor_maps=True)


@dataclass
class Function:
    """A kernel: the bytes of its parameters, and what it does with them, its grid and its block."""

    sizes: tuple[int, ...]
    run: object
    threads: int = 1024
    at_once: int = 1 << 20
    meets: bool = False
    shared: int = 0
    large_clusters: bool = False
    prefers_shared: bool = False


@dataclass
class Launched:
    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    attributes: dict
    args: tuple[bytes, ...]


def words(address, count, dtype):
    """A view of elements at an address."""
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_uint8 * size).from_address(address), dtype)


def number(data):
    return int.from_bytes(data, "little")


def tap(args, _grid, _block):
    (params,) = args
    ring, counter = (number(params[at : at + 8]) for at in (0, 8))
    stride, rows, count, advance = np.frombuffer(params, "<u4", 4, 16).tolist()
    step = words(counter, 1, "<u4")
    for index in range(count):
        at = 32 + 16 * index
        source, offset, size = (
            number(params[at : at + 8]),
            number(params[at + 8 : at + 12]),
            number(params[at + 12 : at + 16]),
        )
        ctypes.memmove(ring + int(step[0]) % rows * stride + offset, source, 4 * size)
    if advance:
        step[0] += 1


@dataclass
class Driver:
    """`code` is what each image holds; `calls` counts, `launched` lists what has run."""

    code: dict = field(default_factory=dict)
    facts: Facts = HOPPER
    capacity: int = 2**40
    refuse: dict = field(default_factory=dict)

    def __post_init__(self):
        self.live, self.maps, self.calls, self.launched = {}, {}, {}, []
        self.queues, self.events, self.objects = {}, {}, {}
        self.recording, self.next, self.closed = None, 1000, False
        self.asked = {}
        self.placed, self.lock = {}, threading.RLock()
        self.mapped, self.encoded, self.images, self.taken = {}, [], [], 0
        self.launch = self._launch

    # --- memory ---

    def enter(self):
        assert not self.closed

    def close(self):
        self.closed = True

    def free_bytes(self):
        chunks = sum(value for kind, value in self.objects.values() if kind == "chunk")
        return self.capacity - self.taken - chunks

    def alloc(self, nbytes):
        self._count("alloc")
        if nbytes > self.free_bytes():
            raise CudaError("cuMemAlloc", "CUDA_ERROR_OUT_OF_MEMORY")
        self.taken += nbytes
        return self._memory(nbytes)

    def alloc_host(self, nbytes):
        self._count("alloc_host")
        return self._memory(nbytes)

    def _memory(self, nbytes):
        held = mmap.mmap(-1, nbytes)
        address = ctypes.addressof(ctypes.c_char.from_buffer(held))
        ctypes.memset(address, 0xA5, min(nbytes, 2**20))
        self.maps[address], self.live[address] = held, nbytes
        return address

    def free(self, address):
        self.taken -= self.live.pop(address)

    def free_host(self, address):
        del self.live[address]

    def granule(self):
        return GRANULE

    def reserve(self, nbytes):
        held = mmap.mmap(-1, nbytes)
        address = ctypes.addressof(ctypes.c_char.from_buffer(held))
        self.maps[address], self.live[address] = held, 0
        return address

    def unreserve(self, address, nbytes):
        assert not [at for at in self.mapped if address <= at < address + nbytes]
        del self.live[address]

    def create(self, nbytes):
        if nbytes > self.free_bytes():
            raise CudaError("cuMemCreate", "CUDA_ERROR_OUT_OF_MEMORY")
        assert nbytes % GRANULE == 0
        return self._object("chunk", nbytes)

    def discard(self, chunk):
        self.objects.pop(chunk)

    def map(self, address, nbytes, chunk):
        self._fail("cuMemMap")
        assert self.objects[chunk] == ("chunk", nbytes)
        assert chunk not in self.placed
        self.mapped[address], self.placed[chunk] = nbytes, address
        ctypes.memset(address, 0xA5, nbytes)

    def unmap(self, address, nbytes):
        assert self.mapped.pop(address) == nbytes
        self.placed = {chunk: at for chunk, at in self.placed.items() if at != address}
        ctypes.memset(address, 0x5A, nbytes)

    def allow(self, address, nbytes):
        assert sum(n for at, n in self.mapped.items() if address <= at < address + nbytes) == nbytes

    # --- work ---

    def zero(self, address, nbytes, stream):
        self._put(stream, lambda: ctypes.memset(address, 0, nbytes))

    def copy_in(self, target, source, nbytes, stream):
        self._count("copy_in")
        self._put(stream, lambda: ctypes.memmove(target, source, nbytes))

    def copy_rows(self, rows, stream):
        self._count("copy_rows")

        def copy():
            for row in range(rows.rows):
                target = rows.target + row * rows.target_pitch
                ctypes.memmove(target, rows.source + row * rows.source_pitch, rows.width)

        self._put(stream, copy)

    def copy_out(self, target, source, nbytes, stream):
        self._put(stream, lambda: ctypes.memmove(target, source, nbytes))

    def copy(self, target, source, nbytes, stream):
        self._put(stream, lambda: ctypes.memmove(target, source, nbytes))

    def stream(self):
        made = self._object("stream")
        self.queues[made] = []
        return made

    def end_stream(self, stream):
        self.sync(stream)
        self.objects.pop(stream)

    def sync(self, stream):
        with self.lock:
            self._run(stream, len(self.queues[stream]))

    def event(self):
        return self._object("event")

    def end_event(self, event):
        self.objects.pop(event)

    def record(self, event, stream):
        self._put(stream, mark := object())
        self.events[event] = stream, mark

    def wait(self, event):
        self._fail("cuEventSynchronize")
        if event in self.events:
            self._run_to(*self.events[event])

    def follow(self, stream, event):
        other, mark = self.events[event]
        self._put(stream, lambda: self._run_to(other, mark))

    def passed(self, event):
        """Only whoever asks again and again finds that time goes by."""
        self._fail("cuEventQuery")
        self.asked[event] = self.asked.get(event, 0) + 1
        if self.asked[event] > 2:
            self._run_to(*self.events[event])
        with self.lock:
            stream, mark = self.events[event]
            return mark not in self.queues[stream]

    def _run_to(self, stream, mark):
        with self.lock:
            if mark in self.queues[stream]:
                self._run(stream, self.queues[stream].index(mark) + 1)

    def _put(self, stream, work):
        assert stream in self.objects
        if self.recording is not None:
            assert callable(work), "an event inside a recording"
            self.recording.append(work)
        else:
            with self.lock:
                self.queues[stream].append(work)

    def _run(self, stream, count):
        assert self.recording is None
        with self.lock:
            work, self.queues[stream] = self.queues[stream][:count], self.queues[stream][count:]
            for step in work:
                if callable(step):
                    step()

    # --- code ---

    def load(self, image):
        self.images.append(image)
        functions = {"bedstone_tap": Function((160,), tap)} if b"bedstone_tap" in image else None
        found = functions or self.code.get(image)
        if found is None:
            raise CudaError("cuModuleLoadData", "CUDA_ERROR_NO_BINARY_FOR_GPU")
        return self._object("module", found)

    def unload(self, module):
        self.objects.pop(module)

    def function(self, module, name):
        found = self.objects[module][1].get(name)
        return None if found is None else self._object(name, found)

    def param_sizes(self, function):
        return self.objects[function][1].sizes

    def most_threads(self, function):
        return self.objects[function][1].threads

    def has(self, module, name):
        return name == "bs_arrivals" and any(f.meets for f in self.objects[module][1].values())

    def blocks_at_once(self, function, _threads, shared):
        assert shared <= self.objects[function][1].shared
        return self.objects[function][1].at_once

    def allow_shared(self, function, nbytes):
        if nbytes > 232448:
            raise CudaError("cuFuncSetAttribute", "CUDA_ERROR_INVALID_VALUE")
        self.objects[function][1].shared = nbytes

    def prefer_shared(self, function):
        self.objects[function][1].prefers_shared = True

    def allow_large_clusters(self, function):
        self.objects[function][1].large_clusters = True

    def encode(self, tiled):
        self._fail("cuTensorMapEncodeTiled")
        self.encoded.append(tiled)
        return len(self.encoded).to_bytes(1, "little") * 128

    def _launch(self, config, function, params, extra):
        self._count("launch")
        if "launch" in self.refuse:
            return self.refuse["launch"]
        assert extra is None
        name, body = self.objects[function]
        fields = words(config, 14, "<u4")
        x, y, z, shared = (tuple(fields[at : at + 3].tolist()) for at in (0, 3, 6, 6))
        del z
        stream, attributes = words(config + 32, 2, "<u8").tolist()
        count = int(fields[12])
        if not all(x) or int(fields[6]) > max(48 * 1024, body.shared):
            return 1
        pointers = words(params, len(body.sizes), "<u8").tolist()
        args = tuple(
            ctypes.string_at(at, size) for at, size in zip(pointers, body.sizes, strict=True)
        )
        seen = {
            int(words(attributes + 72 * i, 1, "<u4")[0]): tuple(
                words(attributes + 72 * i + 8, 3, "<u4").tolist()
            )
            for i in range(count)
        }
        done = Launched(name, x, y, shared[0], seen, args)

        def run():
            self.launched.append(done)
            body.run(args, x, y)

        self._put(stream, run)
        return 0

    # --- graphs ---

    def begin(self, _stream):
        assert self.recording is None
        self.recording = []

    def end(self, _stream):
        recorded, self.recording = self.recording, None
        return self._object("graph", recorded)

    def drop_graph(self, graph):
        self.objects.pop(graph)

    def instantiate(self, graph, _stream):
        self._count("instantiate")
        return self._object("executable", self.objects.pop(graph)[1])

    def end_graph(self, executable):
        self.objects.pop(executable)

    def launch_graph(self, executable, stream):
        self._count("launch_graph")
        for work in self.objects[executable][1]:
            self._put(stream, work)

    # --- bookkeeping ---

    def names(self):
        """What has run, but for what reads outputs back."""
        return [launch.name for launch in self.launched if launch.name != "bedstone_tap"]

    def leaks(self):
        """Everything made and not let go of; functions go with their modules."""
        kinds = {"stream", "event", "module", "chunk", "graph", "executable"}
        return {name for name, *_ in self.objects.values()} & kinds | set(self.live)

    def _object(self, kind, value=None):
        self.next += 1
        self.objects[self.next] = (kind, value)
        return self.next

    def _count(self, call):
        self.calls[call] = self.calls.get(call, 0) + 1

    def _fail(self, call):
        if call in self.refuse:
            raise CudaError(call, self.refuse[call])
