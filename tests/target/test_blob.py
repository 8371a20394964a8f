"""What a compiled module's own bytes say of it."""

from contextlib import suppress

import pytest

from bedstone.errors import KernelError
from bedstone.target.blob import read_blob
from bedstone.target.cubin import cubin_arch
from bedstone.target.toolchain import Unit, compile_unit, find_compiler
from cubins import cubin

SOURCE = """
#define EXPORT __attribute__((visibility("default")))
EXPORT const char bs_needs[] = " avx2" " fma";
EXPORT const char bs_abi_norm[] = "in buffer<f32>, i32";
EXPORT void norm(void) {}
EXPORT const char bs_abi_gone[] = "i32";
EXPORT void helper(void) {}
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("blob")
    (folder / "norm.c").write_text(SOURCE)
    built = compile_unit(Unit((folder / "norm.c",)), cache=folder, compiler=find_compiler())
    return built.read_bytes()


def test_a_shared_object_states_entries_parameters_and_needs(shared):
    blob = read_blob("norm", shared, "x86-64-v3")
    assert (blob.form, blob.arch, blob.needs) == ("shared_object", "x86-64-v3", {"avx2", "fma"})
    assert dict(blob.entries) == {"norm": "in buffer<f32>, i32"}


@pytest.mark.parametrize(
    ("flags", "abi", "arch"),
    [
        (0x6005A04, 8, "sm_90a"),
        (0x55A, 7, "sm_90"),
        (0x6006402, 8, "sm_100a"),
        (0x7902, 8, "sm_121a"),
    ],
)
def test_a_cubin_states_its_device_and_its_kernels(flags, abi, arch):
    blob = read_blob("scale", cubin(flags, abi), arch)
    assert (blob.form, dict(blob.entries)) == ("cubin", {"other": None, "scale": None})


@pytest.mark.parametrize("arch", ["sm_100a", "sm_89", "gfx1151"])
def test_a_cubin_for_another_device_than_declared_is_refused(arch):
    with pytest.raises(KernelError, match=f"machine code for sm_90, expected `{arch}`"):
        read_blob("scale", cubin(0x6005A04, 8), arch)


@pytest.mark.parametrize("arch", ["sm_90", "sm_90a"])
def test_a_cubin_whose_assembler_noted_the_architecture_is_held_to_it_verbatim(arch):
    data = cubin(0x6005A04, 8, b"-v  -lineinfo  -arch %s \0" % arch.encode())
    assert cubin_arch(data, "scale") == arch
    assert read_blob("scale", data, arch).arch == arch
    if arch == "sm_90a":
        with pytest.raises(KernelError, match="machine code for sm_90a, expected `sm_90`"):
            read_blob("scale", data, "sm_90")


@pytest.mark.parametrize("note", [b"-arch sm_100a ", b"-arch sm_90ab ", b"-arch gfx90 ", b""])
def test_a_note_that_contradicts_the_code_is_not_believed(note):
    assert cubin_arch(cubin(0x6005A04, 8, note), "scale") == "sm_90"


def test_ptx_for_another_architecture_than_declared_is_refused():
    text = b".version 8.4\n.target sm_90\n.visible .entry a()\n"
    assert read_blob("m", text, "sm_90").form == "ptx"
    with pytest.raises(KernelError, match="PTX for `sm_90`, expected `sm_90a`"):
        read_blob("m", text, "sm_90a")


def test_text_with_a_letter_of_many_bytes_is_still_text():
    text = b"//" + "ü".encode() * 31 + b"\n.version 8.4\n.target sm_90\n"
    assert read_blob("m", text, "sm_90").form == "ptx"


def test_an_empty_blob_is_nothing():
    with pytest.raises(KernelError, match="no PTX"):
        read_blob("m", b"", "sm_90")


def test_a_file_that_is_cut_short_is_refused_wherever_it_ends(shared):
    for data in (shared, cubin(0x6005A04, 8)):
        for end in range(4, len(data), 97):
            with pytest.raises(KernelError):
                read_blob("m", data[:end], "sm_90a")


@pytest.mark.parametrize("at", range(16, 64))
def test_a_header_that_lies_is_refused_or_read_but_never_trusted(at):
    data = bytearray(cubin(0x6005A04, 8))
    data[at] ^= 0xFF
    with suppress(KernelError):
        read_blob("m", bytes(data), "sm_90a")


def test_only_64_bit_little_endian_files_are_read(shared):
    with pytest.raises(KernelError, match="64-bit little-endian"):
        read_blob("m", shared[:4] + b"\x01" + shared[5:], "x")
