"""Text of records, files and servers made fit for a terminal: it is shown, never obeyed."""

import shlex
import unicodedata


def plain(text: str) -> str:
    """``text`` without control characters but its line breaks: a terminal shows it as it is."""
    return "".join(c for c in text if c == "\n" or _visible(c))


def quoted(path: object) -> str:
    """A path to paste into a shell; control characters in it are written as bash reads them."""
    text = str(path)
    if all(map(_visible, text)):
        return shlex.quote(text)
    parts = (c if _visible(c) and c not in "\\'" else _escaped(c) for c in text)
    return f"$'{''.join(parts)}'"


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a name that is no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\U{code:08x}"


def _visible(character: str) -> bool:
    return unicodedata.category(character)[0] != "C"
