"""HEIC and AVIF files box by box, around coded pictures of codedpictures.py; used by picturecases.py."""
# SPDX-License-Identifier: GPL-3.0-or-later
import struct


def box(kind, data):
    return struct.pack(">I", len(data) + 8) + kind + data


def full(kind, data, version=0, flags=0):
    return box(kind, struct.pack(">I", version << 24 | flags) + data)


def ispe(width, height):
    return full(b"ispe", struct.pack(">II", width, height))


def pixi(*depths):
    return full(b"pixi", bytes([len(depths), *depths]))


def irot(quarters):
    return box(b"irot", bytes([quarters]))


def imir(axis):
    """0 exchanges top and bottom, 1 left and right."""
    return box(b"imir", bytes([axis]))


def nclx(matrix=6, is_full=True):
    return box(b"colr", b"nclx" + struct.pack(">HHHB", 1, 13, matrix, 0x80 if is_full else 0))


def icc(profile):
    return box(b"colr", b"prof" + profile)


def clap(width, height):
    """In the middle."""
    return box(b"clap", struct.pack(">IIIIiIiI", width, 1, height, 1, 0, 1, 0, 1))


def aux_alpha():
    return full(b"auxC", b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0")


def grid(rows, columns, width, height):
    return struct.pack(">BBBBII", 0, 1, rows - 1, columns - 1, width, height)


class Heif:
    def __init__(self, brand=b"heic"):
        self.brand, self.items, self.references = brand, [], []

    def add(self, kind, data, *properties, hidden=False):
        """The number of the item."""
        self.items.append((kind, data, properties, hidden))
        return len(self.items)

    def add_coded(self, coded, *properties, hidden=False, size=None):
        """coded: one of codedpictures.py."""
        return self.add(coded.kind, coded.data, box(coded.setup_kind, coded.setup), ispe(*(size or coded.size)),
                        *properties, hidden=hidden)

    def refer(self, kind, start, *targets):
        self.references.append((kind, start, targets))

    def finish(self, primary=1, extent=0):
        """extent: added to the place of each item."""
        infos = b"".join(full(b"infe", struct.pack(">HH", number, 0) + kind + b"\0", 2, int(hidden))
                         for number, (kind, _, _, hidden) in enumerate(self.items, 1))
        containers, links = b"", b""
        n_property = 0
        for number, (_, _, properties, _) in enumerate(self.items, 1):
            links += struct.pack(">HB", number, len(properties))
            for item in properties:
                n_property += 1
                containers += item
                essential = item[4:8] not in (b"ispe", b"pixi", b"colr", b"auxC")
                links += bytes([n_property | (0x80 if essential else 0)])
        iprp = box(b"iprp", box(b"ipco", containers) + full(b"ipma", struct.pack(">I", len(self.items)) + links))
        parts = [full(b"hdlr", bytes(4) + b"pict" + bytes(13)), full(b"pitm", struct.pack(">H", primary)),
                 full(b"iinf", struct.pack(">H", len(self.items)) + infos), iprp]
        if self.references:
            parts.append(full(b"iref", b"".join(
                box(kind, struct.pack(">HH", start, len(targets)) + b"".join(struct.pack(">H", t) for t in targets))
                for kind, start, targets in self.references)))
        head = box(b"ftyp", self.brand + bytes(4) + self.brand + b"mif1" + b"miaf")
        n_iloc = 16 + 14 * len(self.items)
        at = len(head) + 12 + sum(map(len, parts)) + n_iloc + 8 + extent
        iloc = b""
        for number, (_, data, _, _) in enumerate(self.items, 1):
            iloc += struct.pack(">HHHII", number, 0, 1, at, len(data))
            at += len(data)
        iloc = full(b"iloc", struct.pack(">BBH", 0x44, 0, len(self.items)) + iloc)
        assert len(iloc) == n_iloc
        return head + full(b"meta", b"".join(parts) + iloc) + box(b"mdat", b"".join(d for _, d, _, _ in self.items))


def still(coded, *properties, brand=b"heic", size=None, **keys):
    file = Heif(brand)
    file.add_coded(coded, *properties, size=size)
    return file.finish(**keys)
