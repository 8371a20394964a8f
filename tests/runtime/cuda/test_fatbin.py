"""Device code lifted out of files, real and made up, whole and broken."""

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedstone.errors import KernelError
from bedstone.runtime.cuda.fatbin import Image, containers, device_images

REAL = Path(__file__).parents[2] / "gpu" / "add.so"


def elf(bodies, machine=62):
    """An ELF file of named sections, the names' table last."""
    names, offsets = b"\0", []
    for name in [*(name for name, _ in bodies), ".shstrtab"]:
        offsets.append(len(names))
        names += name.encode() + b"\0"
    data, headers = b"", [bytes(64)]
    for (_, body), name in zip([*bodies, ("", names)], offsets, strict=True):
        headers.append(
            struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, 64 + len(data), len(body), 0, 0, 1, 0)
        )
        data += body
    head = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, machine, 1, 0, 0, 64 + len(data),
        0, 64, 0, 0, 64, len(headers), len(headers) - 1,
    )  # fmt: skip
    return head + data + b"".join(headers)


def container(payload):
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(payload)) + payload


payloads = st.lists(st.binary(max_size=40), min_size=1, max_size=5)
gaps = st.lists(st.integers(0, 9), min_size=6, max_size=6)
names = st.text("abc._", min_size=1, max_size=8)


def spaced(pieces, gaps):
    return b"".join(bytes(gap) + piece for gap, piece in zip(gaps, pieces, strict=False))


@given(payloads, gaps, st.lists(st.tuples(names, st.binary(max_size=30)), max_size=4))
def test_every_container_of_a_host_object_comes_out_whole(payloads, gaps, others):
    wanted = [container(payload) for payload in payloads]
    body = spaced(wanted, gaps) + bytes(gaps[-1])
    others = [(name, data) for name, data in others if name != ".nv_fatbin"]
    data = elf([*others[:2], (".nv_fatbin", body), *others[2:]])
    assert device_images("m", data) == tuple(Image("fatbin", piece) for piece in wanted)


@settings(max_examples=200)
@given(payloads, gaps, st.data())
def test_broken_files_are_refused_and_nothing_else(payloads, gaps, data):
    whole = elf([(".text", b"x" * 9), (".nv_fatbin", spaced(map(container, payloads), gaps))])
    broken = bytearray(whole[: data.draw(st.integers(0, len(whole)))])
    for _ in range(data.draw(st.integers(0, 4))):
        if broken:
            broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(KernelError):
        images = device_images("m", bytes(broken))
        assert all(image.data in bytes(broken) for image in images)


@given(payloads, gaps)
def test_a_container_that_is_cut_short_is_refused(payloads, gaps):
    body = spaced(map(container, payloads), gaps)
    with pytest.raises((ValueError, struct.error)):
        list(containers(body[:-1] if payloads[-1] else body + b"\x50"))


def test_a_real_object_has_both_its_containers():
    images = device_images("m", REAL.read_bytes())
    assert [image.form for image in images] == ["fatbin", "fatbin"]
    assert all(image.data.startswith(b"\x50\xed\x55\xba") for image in images)


def test_a_cubin_is_loaded_as_it_is():
    data = elf([(".text.f", b"code")], machine=190)
    assert device_images("m", data) == (Image("cubin", data),)


def test_a_fat_binary_alone():
    data = container(b"a") + bytes(7) + container(b"bc")
    assert [image.data for image in device_images("m", data)] == [container(b"a"), container(b"bc")]


def test_text():
    text = b"// comment\n.version 8.0\n.target sm_90\n"
    assert device_images("m", text) == (Image("ptx", text),)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "expected ELF, a fat binary or PTX text"),
        (elf([(".text", b"")]), "a host object without a section `.nv_fatbin`"),
        (elf([(".nv_fatbin", bytes(64))]), "an empty fat binary section"),
        (elf([(".nv_fatbin", bytes(8) + b"abc" * 9)]), "no fat binary at byte 8 of its section"),
    ],
)
def test_files_without_device_code(data, reason):
    with pytest.raises(KernelError, match=f"module `m` holds no device code: .*{reason}"):
        device_images("m", data)


def test_a_section_without_bytes_in_the_file_is_empty():
    data = bytearray(elf([(".nv_fatbin", container(b"x"))]))
    at = data.index(struct.pack("<IIQ", 1, 1, 0))
    struct.pack_into("<I", data, at + 4, 8)
    with pytest.raises(KernelError, match="an empty fat binary section"):
        device_images("m", bytes(data))
