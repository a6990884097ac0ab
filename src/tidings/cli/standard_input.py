"""How is standard input read without standing in the way of anything else?

In a thread that nobody waits for when the command ends: a terminal or a pipe may stay silent for
ever. It reads the descriptor itself, since Python cannot end while a thread holds the lock of
`sys.stdin`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from os import read

DESCRIPTOR = 0
READ_BYTES = 65_536


async def lines_of_stdin() -> AsyncIterator[bytes]:
    """Each line with its end, as soon as it is whole; the last one may have none."""
    begun: list[bytes] = []
    while data := await _read():
        *ended, rest = data.split(b"\n")
        for part in ended:
            yield b"".join((*begun, part, b"\n"))
            begun.clear()
        begun.append(rest)
    if any(begun):
        yield b"".join(begun)


async def _read() -> bytes:
    loop = asyncio.get_running_loop()
    found: asyncio.Future[bytes] = loop.create_future()

    def keep(data: bytes, problem: OSError | None) -> None:
        if found.done():  # nobody waits any more
            return
        if problem is not None:
            found.set_exception(problem)
        else:
            found.set_result(data)

    def wait() -> None:
        data, problem = b"", None
        try:
            data = read(DESCRIPTOR, READ_BYTES)
        except OSError as error:
            problem = error
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(keep, data, problem)

    threading.Thread(target=wait, daemon=True).start()
    return await found
