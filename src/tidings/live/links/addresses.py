"""Where is a broker's link port? An address as people write it and as brokers tell it: host:port.

What is told comes from the wire, so anything may stand there. An IPv6 address stands in brackets.
"""

from __future__ import annotations

from typing import NamedTuple

LONGEST_HOST = 253  # that a name server knows
HIGHEST_PORT = 65_535


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def is_sane(self) -> bool:
        """Could a host have that name?"""
        plain = self.host.isprintable() and not any(c.isspace() or c in "[]/@" for c in self.host)
        return plain and 0 < len(self.host) <= LONGEST_HOST and 0 < self.port <= HIGHEST_PORT


def address_in(text: str, port: int = 0) -> Address | None:
    """The address that a text states; `port` is meant where it states none. None: it is not one."""
    host, colon, stated = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, stated = text, str(port)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        return None
    if not (stated.isascii() and stated.isdigit() and len(stated) <= len(str(HIGHEST_PORT))):
        return None
    address = Address(host, int(stated))
    return address if address.is_sane() else None
