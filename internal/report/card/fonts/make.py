"""Writes fonts.bin: outlines of the characters that a card draws.

python make.py IMAGE

IMAGE is a checkout of golang.org/x/image; it needs fonttools. The file is a raw deflate stream.
For each font, regular, bold and mono, and for each character of characters.txt, in order: the
advance, the number of contours, and of each contour its number of points. A point is the zigzag
distance in x, doubled, plus 1 on the curve, and the zigzag distance in y. All are uvarints. Units
are 1/512 em, y points down. A character that a font lacks has an advance of 0.
"""

import re
import sys
import zlib
from pathlib import Path

from fontTools.ttLib import TTFont
from io import BytesIO

EM = 512
here = Path(__file__).parent


def uvarint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return out


def zigzag(n):
    return n * 2 if n >= 0 else -n * 2 - 1


def contours(font, glyph):
    """Points of a glyph's contours, each (x, y, whether it is on the curve)."""
    glyf = font["glyf"]
    points, ends, flags = glyf[glyph].getCoordinates(glyf)
    scale, start, list_ = EM / font["head"].unitsPerEm, 0, []
    for end in ends:
        list_.append([(round(x * scale), -round(y * scale), f & 1) for (x, y), f in
                      list(zip(points, flags))[start:end + 1]])
        start = end + 1
    return list_


def outlines(ttf, characters):
    font, out = TTFont(BytesIO(ttf)), bytearray()
    names, scale = font.getBestCmap(), EM / font["head"].unitsPerEm
    for c in characters:
        name = names.get(ord(c))
        if name is None:
            out += uvarint(0) + uvarint(0)
            continue
        parts = contours(font, name)
        out += uvarint(round(font["hmtx"][name][0] * scale)) + uvarint(len(parts))
        x0 = y0 = 0
        for part in parts:
            out += uvarint(len(part))
            for x, y, on in part:
                out += uvarint(zigzag(x - x0) * 2 + on) + uvarint(zigzag(y - y0))
                x0, y0 = x, y
    return out


characters = (here / "characters.txt").read_text().rstrip("\n")
data = bytearray()
for name in ["goregular", "gobold", "gomono"]:
    source = (Path(sys.argv[1]) / "font/gofont" / name / "data.go").read_text()
    ttf = bytes(int(x, 16) for x in re.findall(r"0x([0-9a-f]{2})", source))
    part = outlines(ttf, characters)
    print(name, len(ttf), len(part), [c for c in characters if ord(c) not in TTFont(BytesIO(ttf)).getBestCmap()])
    data += part
squeezed = zlib.compressobj(9, zlib.DEFLATED, -15)
(here / "fonts.bin").write_bytes(squeezed.compress(bytes(data)) + squeezed.flush())
