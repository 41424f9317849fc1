"""What the filter refuses is refused, what programs need goes on, and other ways to call the kernel are closed."""

from __future__ import annotations

import struct

import pytest

from hermes_agent.sandbox.seccomp import MACHINES, program

ALLOWED, EPERM, ENOSYS = 0x7FFF_0000, 0x0005_0001, 0x0005_0026
CALLS = {"read": (0, 63), "mount": (165, 40), "bpf": (321, 280), "keyctl": (250, 219), "clone3": (435, 435)}
CALLS |= {"io_uring_setup": (425, 425), "unshare": (272, 97), "clone": (56, 220), "ioctl": (16, 29)}
CALLS |= {"ptrace": (101, 117), "personality": (135, 92), "socket": (41, 198), "process_vm_writev": (311, 271)}


def decide(code: bytes, number: int, arguments: tuple[int, ...] = (), architecture: int = MACHINES["x86_64"]) -> int:
    """What the kernel would do: the filter, run."""
    data = struct.pack("=IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    steps = [struct.unpack_from("=HBBI", code, at) for at in range(0, len(code), 8)]
    at = value = 0
    while True:
        kind, yes, no, operand = steps[at]
        at += 1
        match kind:
            case 0x20:
                (value,) = struct.unpack_from("=I", data, operand)
            case 0x54:
                value &= operand
            case 0x15:
                at += yes if value == operand else no
            case 0x35:
                at += yes if value >= operand else no
            case 0x06:
                return operand


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("call", "arguments", "decision"),
    [
        ("read", (), ALLOWED),
        ("mount", (), EPERM),
        ("bpf", (), EPERM),
        ("keyctl", (), EPERM),
        ("io_uring_setup", (), EPERM),
        ("unshare", (), EPERM),
        ("process_vm_writev", (), EPERM),
        ("clone3", (), ENOSYS),
        ("clone", (0x0120_0011,), ALLOWED),
        ("clone", (0x003D_0F00,), ALLOWED),
        ("clone", (0x1000_0011,), EPERM),
        ("clone", (0x0002_0000,), EPERM),
        ("ioctl", (0, 0x5401), ALLOWED),
        ("ioctl", (0, 0x5412), EPERM),
        ("ioctl", (0, 0xFFFF_FFFF_0000_5412), EPERM),
        ("ptrace", (0, 0), ALLOWED),
        ("ptrace", (16, 77), ALLOWED),
        ("ptrace", (16, 1), EPERM),
        ("personality", (0xFFFF_FFFF,), ALLOWED),
        ("personality", (0x0040_0000,), EPERM),
        ("socket", (1, 1), ALLOWED),
    ],
)
def test_a_call_is_decided(machine: str, call: str, arguments: tuple[int, ...], decision: int) -> None:
    number = CALLS[call][list(MACHINES).index(machine)]

    assert decide(program(machine=machine), number, arguments, MACHINES[machine]) == decision


@pytest.mark.parametrize(
    ("sockets", "unix", "inet"), [("all", ALLOWED, ALLOWED), ("inet", EPERM, ALLOWED), ("none", EPERM, EPERM)]
)
def test_sockets_are_those_that_are_named(sockets: str, unix: int, inet: int) -> None:
    code = program(sockets=sockets, machine="x86_64")

    assert (decide(code, 41, (1, 1)), decide(code, 41, (2, 1))) == (unix, inet)


def test_other_sets_of_numbers_are_closed() -> None:
    code = program(machine="x86_64")

    assert decide(code, 0x4000_0000 + 1) == EPERM
    assert decide(code, 4, (), 0x4000_0003) == EPERM
    assert program(machine="riscv64") == b""
