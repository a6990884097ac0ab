"""Addresses as people write them and brokers tell them: what is none is none, whatever it is."""

import pytest

from tidings.live.links.addresses import Address, address_in


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:7001", Address("127.0.0.1", 7001)),
        ("turin.example.net:1", Address("turin.example.net", 1)),
        ("[2001:db8::7]:65535", Address("2001:db8::7", 65_535)),
    ],
)
def test_an_address_reads_back_as_it_was_written(text: str, address: Address) -> None:
    assert address_in(text) == address
    assert str(address) == text


@pytest.mark.parametrize("text", ["turin", "[::1]"])
def test_a_host_alone_means_a_port_that_is_known(text: str) -> None:
    assert address_in(text) is None
    assert address_in(text, 7001) == Address(text.strip("[]"), 7001)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            ":",
            ":7",
            "a:",
            "a:0",
            "a:65536",
            "a:-1",
            "a:+1",
            "a:1e3",
            "a:\u0667",
            "a:7:7",
            "::1",
        ),
        *("a b:7", "a\x00:7", "a\n:7", "[::1:7", "::1]:7", "[]:7", "a/b:7", "me@a:7"),
        *("a" * 254 + ":7", "a:" + "7" * 10_000),
    ],
)
def test_what_is_no_address_is_not_dialled(text: str) -> None:
    assert address_in(text) is None
