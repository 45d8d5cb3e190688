"""A proxy before a redis-server whose setting `masteruser` is told as Dragonfly's `default_lua_flags`.

    with_lua_flags.py SERVER_SOCKET PROXY_SOCKET
"""

import asyncio
import sys

# Settings are asked for by patterns: this one is as long as the name that it replaces.
ASKED, PATTERN = b"default_lua_flags", b"*asteruse[rrrrrr]"
NAMED, TOLD = b"$10\r\nmasteruser\r\n", b"$17\r\ndefault_lua_flags\r\n"
assert len(ASKED) == len(PATTERN)


async def copy(reader, writer, before, after):
    while received := await reader.read(65536):  # more than the doctor's questions and answers have
        writer.write(received.replace(before, after))
        await writer.drain()
    writer.close()


async def main(server, proxy):
    async def serve(reader, writer):
        there_reader, there_writer = await asyncio.open_unix_connection(server)
        await asyncio.gather(copy(reader, there_writer, ASKED, PATTERN), copy(there_reader, writer, NAMED, TOLD))

    async with await asyncio.start_unix_server(serve, proxy) as listening:
        await listening.serve_forever()


asyncio.run(main(*sys.argv[1:]))
