"""Modules by the hash of their bytes, entries by their exact parameters."""

import hashlib
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from bedstone.errors import KernelError
from bedstone.runtime.abi import abi_string
from bedstone.runtime.cpu.device import CpuDevice
from bedstone.runtime.generate import Generator
from bedstone.runtime.load import Parts, load
from bedstone.runtime.lower import Kernel
from bedstone.runtime.modules import Artifact, resolve_modules
from bedstone.spec.manifest import (
    BufferParam,
    BytesParam,
    ExternLaunch,
    Impl,
    Module,
    ScalarParam,
    StateParam,
)
from runtime_toy import SOURCE, compile_module, expected, toy_manifest


@pytest.fixture
def module(tmp_path, cache):
    folder = tmp_path / "kernels"
    sha256 = compile_module(SOURCE, folder, cache)
    return sha256, next(folder.iterdir())


def test_names_and_neighbours_mean_nothing(module, cache):
    sha256, path = module
    path.rename(path.with_name("README.txt"))
    (path.parent / "toy.so").write_bytes(b"other")
    (path.parent / "folder").mkdir()
    parts = Parts(toy_manifest(sha256.upper()), path.parent)
    with load(parts, cache=cache, threads=1) as session:
        assert list(Generator(session).generate([1, 2], 3)) == expected([1, 2], 3)


def test_a_flipped_byte_is_a_missing_module(module, cache):
    sha256, path = module
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(KernelError) as caught:
        load(Parts(toy_manifest(sha256), path.parent), cache=cache)
    message = str(caught.value)
    assert "module `toy`" in message
    assert sha256 in message
    assert str(path.parent) in message


def test_a_changed_file_that_bears_the_hash_is_named(module, cache):
    sha256, path = module
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    changed = path.with_name(f"toy-{sha256[:12]}.so")
    path.rename(changed)
    changed.write_bytes(data)
    actual = hashlib.sha256(data).hexdigest()
    with pytest.raises(KernelError, match=rf"{changed.name}` bears its name but has.*{actual}"):
        load(Parts(toy_manifest(sha256), path.parent), cache=cache)


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        (None, "needs a kernels directory and none was given"),
        ("nowhere", "`.*nowhere`, which is not a directory"),
        (".", r"none of the 1 file\(s\) in .*; copy the file with these bytes there"),
    ],
)
def test_a_missing_module_says_where_it_was_looked_for(tmp_path, folder, message):
    (tmp_path / "other").write_bytes(b"x")
    directory = None if folder is None else tmp_path / folder
    with pytest.raises(KernelError, match=f"module `toy` with sha256 {'ab' * 32} .*{message}"):
        resolve_modules({"toy": Module("toy", "ab" * 32)}, directory)


def test_a_manifest_without_modules_needs_no_directory():
    assert resolve_modules({}, None) == {}


def test_a_file_is_hashed_once_and_equal_modules_share_it(tmp_path):
    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / "b").write_bytes(b"two")
    sha256 = hashlib.sha256(b"one").hexdigest()
    seen = []
    found = resolve_modules(
        {"m": Module("m", sha256), "n": Module("n", sha256)},
        tmp_path,
        lambda done, total: seen.append((done, total)),
    )
    assert found["m"].data is found["n"].data
    assert seen == [(0, 2), (1, 2), (2, 2)]


def test_a_file_that_changes_after_hashing_is_not_what_runs(tmp_path, cache):
    text = SOURCE.read_text()
    shas, folders = [], [tmp_path / "kernels", tmp_path / "others"]
    # neither has been loaded by another test of this process
    for folder, sum_ in zip(folders, ("sum % vocab", "0 * vocab"), strict=True):
        source = tmp_path / "toy.c"
        source.write_text(text.replace("sum % vocab", sum_) + "const int raced = 1;\n")
        shas.append(compile_module(source, folder, cache))
    path, other = (next(folder.iterdir()) for folder in folders)

    def swap(stage, done, total):
        if (stage, done) == ("modules", total):
            path.write_bytes(other.read_bytes())

    parts = Parts(toy_manifest(shas[0]), path.parent)
    with load(parts, cache=cache, threads=1, progress=swap) as session:
        assert hashlib.sha256(path.read_bytes()).hexdigest() == shas[1]
        assert Generator(session).prefill([4, 5]) == 9


def test_a_folder_that_changes_under_the_load_gives_the_right_bytes_or_an_error(module, cache):
    sha256, path = module
    good, stop = path.read_bytes(), threading.Event()
    bad = bytes(len(good))

    def flicker():
        while not stop.is_set():
            path.write_bytes(bad)
            path.write_bytes(good)

    thread = threading.Thread(target=flicker)
    thread.start()
    try:
        for _ in range(40):
            try:
                session = load(Parts(toy_manifest(sha256), path.parent), cache=cache, threads=1)
            except KernelError:
                continue
            with session:
                assert Generator(session).prefill([4, 5]) == 9
    finally:
        stop.set()
        thread.join()
    path.write_bytes(good)
    with load(Parts(toy_manifest(sha256), path.parent), cache=cache, threads=1) as session:
        assert Generator(session).prefill([4, 5]) == 9


def test_a_file_that_is_no_shared_object_is_refused(tmp_path, cache):
    data = b"not an object"
    (tmp_path / "m").write_bytes(data)
    manifest = toy_manifest(hashlib.sha256(data).hexdigest())
    with pytest.raises(KernelError, match="module `toy` is no whole ELF file"):
        load(Parts(manifest, tmp_path), cache=cache, threads=1)


@pytest.mark.parametrize("name", ["m" * 300, "a\0b", "\ud800"])
def test_a_modules_name_need_not_be_a_files(module, cache, name):
    sha256, path = module
    manifest = toy_manifest(sha256)
    renamed = {
        op: replace(body, impl=Impl(tuple(replace(x, module=name) for x in body.impl.launches)))
        for op, body in manifest.ops.items()
    }
    manifest = replace(manifest, ops=renamed, modules={name: manifest.modules["toy"]})
    load(Parts(manifest, path.parent), cache=cache, threads=1).close()


def test_an_entry_the_module_lacks_is_named(module, cache):
    sha256, path = module
    manifest = toy_manifest(sha256)
    launch = replace(manifest.ops["part"].impl.launches[0], entry="absent")
    ops = {**manifest.ops, "part": replace(manifest.ops["part"], impl=Impl((launch,)))}
    with pytest.raises(KernelError, match=r"op `part` launch #0: .* exports no `bs_abi_absent`"):
        load(Parts(replace(manifest, ops=ops), path.parent), cache=cache, threads=1)


def test_a_built_in_is_refused_by_name(module, cache):
    sha256, path = module
    manifest = toy_manifest(sha256)
    launch = ExternLaunch("extern:cublaslt_bf16_tn")
    ops = {**manifest.ops, "part": replace(manifest.ops["part"], impl=Impl((launch,)))}
    message = "op `part` launch #0: unsupported extern `extern:cublaslt_bf16_tn`"
    for device in ("cpu", "null"):
        with pytest.raises(KernelError, match=message):
            load(Parts(replace(manifest, ops=ops), path.parent), cache=cache, device=device)


TRUE = toy_manifest("0" * 64).ops["part"].params


def mutations():
    yield "dropped", TRUE[:-1]
    yield "added", (*TRUE, ScalarParam("i32"))
    yield "empty", ()
    for index in range(len(TRUE) - 1):
        if TRUE[index] != TRUE[index + 1]:
            swapped = list(TRUE)
            swapped[index : index + 2] = reversed(swapped[index : index + 2])
            yield f"swapped {index}", tuple(swapped)
    others = [
        *(BufferParam(way, dtype) for way in ("in", "out", "inout") for dtype in ("i32", "f32")),
        *(StateParam(way) for way in ("in", "out", "inout")),
        *map(ScalarParam, ("i32", "i64", "f32", "u8")),
        *map(BytesParam, (4, 8)),
    ]
    for index, param in enumerate(TRUE):
        for other in others:
            if other != param:
                yield f"{index} {other}", (*TRUE[:index], other, *TRUE[index + 1 :])


@pytest.fixture(scope="module")
def device(cache):
    device = CpuDevice(cache, 1)
    yield device
    device.close()


@pytest.fixture(scope="module")
def artifact(tmp_path_factory, cache):
    folder = tmp_path_factory.mktemp("abi")
    sha256 = compile_module(SOURCE, folder, cache)
    path = next(folder.iterdir())
    return Artifact("toy", sha256, path, path.read_bytes())


def test_the_true_parameters_are_accepted(device, artifact):
    assert device.function(artifact, Kernel("toy", "part", TRUE))


@pytest.mark.parametrize("params", [pytest.param(p, id=name) for name, p in mutations()])
def test_any_other_parameter_list_is_refused_with_both(device, artifact, params):
    with pytest.raises(KernelError) as caught:
        device.function(artifact, Kernel("toy", "part", params))
    message = str(caught.value)
    assert f"the launch passes `{abi_string(params)}`" in message
    assert f"the kernel takes `{abi_string(TRUE)}`" in message


def test_a_kernel_compiled_for_another_abi_is_refused_at_load(tmp_path, cache):
    source = tmp_path / "toy.c"
    text = Path(SOURCE).read_text()
    source.write_text(text.replace('store, "in buffer<i32>, in', 'store, "in buffer<i64>, in'))
    sha256 = compile_module(source, tmp_path / "kernels", cache)
    with pytest.raises(KernelError, match=r"op `store.1` launch #0: kernel `store` .*<i32>.*<i64>"):
        load(Parts(toy_manifest(sha256), tmp_path / "kernels"), cache=cache, threads=1)
