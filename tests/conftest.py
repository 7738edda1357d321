"""Refuse every socket that leaves this machine, in the test session and in what pytester runs in process."""

from __future__ import annotations

import ipaddress
import socket

import pytest


def _loopback(address: object) -> bool:
    if not isinstance(address, tuple):
        return True  # a Unix socket
    host = str(address[0])
    if host in {"localhost", ""}:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@pytest.fixture(autouse=True, scope="session")
def _no_way_out() -> object:
    connect = socket.socket.connect
    connect_ex = socket.socket.connect_ex

    def guarded(self: socket.socket, address: object) -> None:
        if not _loopback(address):
            raise PermissionError(f"tests may not leave this machine: connect to {address!r} refused")
        connect(self, address)

    def guarded_ex(self: socket.socket, address: object) -> int:
        if not _loopback(address):
            raise PermissionError(f"tests may not leave this machine: connect to {address!r} refused")
        return connect_ex(self, address)

    patch = pytest.MonkeyPatch()
    patch.setattr(socket.socket, "connect", guarded)
    patch.setattr(socket.socket, "connect_ex", guarded_ex)
    yield
    patch.undo()
