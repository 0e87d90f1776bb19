"""Text files that people write: UTF-8, with or without its byte order mark."""

import codecs

_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_LOOK_AT = 4096  # bytes


def _encoding(data: bytes) -> str:
    """What it is instead of UTF-8; "" if it may be that. As base/os/text_file.c tells them apart."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return name
    pairs = min(len(data), _LOOK_AT) // 2
    even, odd = (data[i : 2 * pairs : 2].count(0) for i in (0, 1))
    if pairs < 2 or (even > 0) == (odd > 0) or even + odd < pairs - pairs // 4:
        return ""
    return "UTF-16LE" if odd else "UTF-16BE"


def utf8(data: bytes, path: object) -> bytes:
    """The bytes without a mark. ValueError for another encoding; it names the file, and how to convert it."""
    name = _encoding(data)
    if name:
        raise ValueError('%s: this is %s; UTF-8 is read, which "iconv -f %s -t UTF-8" makes of it' % (path, name, name))
    return data[len(codecs.BOM_UTF8) :] if data.startswith(codecs.BOM_UTF8) else data
