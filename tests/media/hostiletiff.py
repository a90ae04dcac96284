"""TIFF files from their directories up: strips, tiles, BigTIFF, several pictures; used by picturecases.py."""
# SPDX-License-Identifier: GPL-3.0-or-later
import struct
import zlib

SHORT, LONG, LONG8, UNDEFINED = 3, 4, 16, 7
SIZES = {1: 1, SHORT: 2, LONG: 4, UNDEFINED: 1, LONG8: 8}
CODES = {1: "B", SHORT: "H", LONG: "I", UNDEFINED: "B", LONG8: "Q"}
NONE, DEFLATE, PACKBITS = 1, 8, 32773


class Tiff:
    def __init__(self, order="<", big=False):
        self.order, self.big = order, big
        mark = b"II" if order == "<" else b"MM"
        head = self.pack("HHH", 43, 8, 0) + bytes(8) if big else self.pack("H", 42) + bytes(4)
        self.out, self.last = bytearray(mark + head), 8 if big else 4

    def pack(self, form, *values):
        return struct.pack(self.order + form, *values)

    def add_data(self, data):
        """Its place in the file."""
        self.out += bytes(len(self.out) % 2)
        at = len(self.out)
        self.out += data
        return at

    def add_directory(self, tags, n_entries=None):
        """tags: {number: (type, [values])}; chained behind the directory before."""
        count, offset, room = ("Q", "Q", 8) if self.big else ("H", "I", 4)
        entries = b""
        for tag, (kind, values) in sorted(tags.items()):
            data = b"".join(self.pack(CODES[kind], v) for v in values)
            if len(data) > room:
                data = self.pack(offset, self.add_data(data))
            entries += self.pack("HH" + offset, tag, kind, len(values)) + data.ljust(room, b"\0")
        at = self.add_data(self.pack(count, len(tags) if n_entries is None else n_entries) + entries
                           + self.pack(offset, 0))
        self.out[self.last:self.last + room] = self.pack(offset, at)
        self.last = len(self.out) - room
        return at

    def loop(self, at):
        """The chain goes on at `at`."""
        room = 8 if self.big else 4
        self.out[self.last:self.last + room] = self.pack("Q" if self.big else "I", at)
        return self

    def add_picture(self, width, height, strips, depth=(8, 8, 8), photometric=2, compression=NONE, rows=None,
                    tile=None, **more):
        """strips: pieces as they are packed; more: tN=(type, [values]) adds or replaces tag N."""
        places = [self.add_data(s) for s in strips]
        tags = {256: (LONG, [width]), 257: (LONG, [height]), 258: (SHORT, list(depth)),
                259: (SHORT, [compression]), 262: (SHORT, [photometric]), 277: (SHORT, [len(depth)])}
        if tile:
            tags.update({322: (LONG, [tile[0]]), 323: (LONG, [tile[1]]), 324: (LONG, places),
                         325: (LONG, [len(s) for s in strips])})
        else:
            tags.update({273: (LONG, places), 278: (LONG, [rows or height]), 279: (LONG, [len(s) for s in strips])})
        tags.update({int(key[1:]): value for key, value in more.items()})
        return self.add_directory(tags)

    def finish(self):
        return bytes(self.out)


def single(width, height, strips, order="<", big=False, **keys):
    file = Tiff(order, big)
    file.add_picture(width, height, strips, **keys)
    return file.finish()


def rgb(rows):
    return b"".join(bytes(p[:3]) for row in rows for p in row)


def tiled(rows, side=16):
    """Tiles of side x side, filled up with zeros."""
    height, width = len(rows), len(rows[0])
    tiles = []
    for y in range(0, height, side):
        for x in range(0, width, side):
            lines = [rgb([row[x:x + side]]).ljust(3 * side, b"\0") for row in rows[y:y + side]]
            tiles.append(zlib.compress(b"".join(lines).ljust(3 * side * side, b"\0")))
    return single(width, height, tiles, compression=DEFLATE, tile=(side, side))
