"""Files with device code, made of machine code that a test has."""

import struct

CUBIN, PTX, LTO = 2, 1, 8  # kinds of entries
LZ4, ZSTANDARD, OF_ARCHITECTURE = 0x2000, 0x8000, 0x100000  # flags
_HEADER_BYTES = 64


def entry(content, capability, kind=CUBIN, *, flags=0, size=0, options=b""):
    """An entry; `content` is compressed if `size`, the bytes before that, is not 0."""
    options += bytes(-len(options) % 8)
    padded = content + bytes(-len(content) % 8)
    packed = len(content) if size else 0
    header = _HEADER_BYTES + len(options)
    at = _HEADER_BYTES if options else 0
    fields = (kind, 0x101, header, len(padded), packed, at, 0, 0, capability, 0, 0, flags, 0, size)
    return struct.pack("<HHIQIIHHIIIQQQ", *fields) + options + padded


def fatbin(*entries):
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def program(*fatbins, sections=0):
    """An ELF file for the host, with fatbins in it; `sections` are said to be behind them."""
    body = b"".join(bytes(-len(one) % 8) + one for one in fatbins)
    ident = b"\x7fELF\2\1\1" + bytes(9)
    fields = (ident, 1, 62, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, sections, 0)
    return struct.pack("<16sHHIQQQIHHHHHH", *fields) + body
