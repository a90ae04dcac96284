"""Pictures in PNG, JPEG, GIF, BMP, TIFF and WebP, byte by byte: used by make-hostile.py."""
# SPDX-License-Identifier: GPL-3.0-or-later
import struct
import zlib

RED, GREEN, BLUE, WHITE = (255, 0, 0, 255), (0, 255, 0, 255), (0, 0, 255, 255), (255, 255, 255, 255)


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width, height, rows, depth=8, color=6, extra=b""):
    """rows: the bytes of each row, without the filter byte."""
    head = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    packer, body = zlib.compressobj(9), bytearray()
    for row in rows:
        body += packer.compress(b"\0" + row)
    body += packer.flush()
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", bytes(body)) + chunk(b"IEND", b""))


def png_rgba(rows):
    """rows: lists of (r, g, b, a)."""
    return png(len(rows[0]), len(rows), [bytes(sum(row, ())) for row in rows])


def png_interlaced(width, height, rows, n):
    """rows of n bytes a pixel, in the seven passes."""
    body = b""
    for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
                           (0, 1, 1, 2)):
        for y in range(y0, height, dy):
            body += b"\0" + b"".join(rows[y][n * x:n * x + n] for x in range(x0, width, dx))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 1)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(body)) + chunk(b"IEND", b""))


def exif(orientation):
    """A block with one entry, big-endian."""
    return b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 274, 3, 1, orientation, 0, 0)


class Bits:
    def __init__(self):
        self.out, self.n, self.value = bytearray(), 0, 0

    def put(self, value, n):
        for i in range(n - 1, -1, -1):
            self.value = self.value << 1 | (value >> i & 1)
            self.n += 1
            if self.n == 8:
                self.out.append(self.value)
                if self.value == 0xFF:
                    self.out.append(0)
                self.n = self.value = 0

    def finish(self):
        while self.n:
            self.put(1, 1)
        return bytes(self.out)


def segment(marker, data):
    return bytes([0xFF, marker]) + struct.pack(">H", len(data) + 2) + data


def jpeg(blocks, orientation=None, progressive=False, adobe=None, extra=b""):
    """blocks: rows of 8 x 8 squares, each a tuple of 1, 3 (YCbCr) or 4 components; flat, so without loss."""
    n = len(blocks[0][0])
    out = b"\xff\xd8"
    if orientation:
        out += segment(0xE1, b"Exif\0\0" + exif(orientation))
    out += extra
    if adobe is not None:
        out += segment(0xEE, b"Adobe\0\x64\0\0\0\0" + bytes([adobe]))
    out += segment(0xDB, b"\0" + bytes([8] * 64))
    components = b"".join(bytes([i + 1, 0x11, 0]) for i in range(n))
    out += segment(0xC2 if progressive else 0xC0,
                   struct.pack(">BHHB", 8, 8 * len(blocks), 8 * len(blocks[0]), n) + components)
    out += segment(0xC4, b"\x00" + bytes([0, 0, 0, 12] + [0] * 12) + bytes(range(12)))
    out += segment(0xC4, b"\x10" + bytes([1] + [0] * 15) + b"\0")
    out += segment(0xDA, bytes([n]) + b"".join(bytes([i + 1, 0]) for i in range(n))
                   + (b"\0\0\0" if progressive else b"\0\x3f\0"))
    bits, last = Bits(), [0] * n
    for block in (b for row in blocks for b in row):
        for i, value in enumerate(block):
            dc = value - 128
            difference, last[i] = dc - last[i], dc
            size = abs(difference).bit_length()
            bits.put(size, 4)
            bits.put(difference if difference > 0 else difference + (1 << size) - 1, size)
            if not progressive:
                bits.put(0, 1)
    out += bits.finish()
    for i in range(n if progressive else 0):  # each component's other frequencies: none
        bits = Bits()
        for _ in range(len(blocks) * len(blocks[0])):
            bits.put(0, 1)
        out += segment(0xDA, bytes([1, i + 1, 0, 1, 63, 0])) + bits.finish()
    return out + b"\xff\xd9"


def jpeg_scan_bomb(width, height, n_scan):
    """Progressive; each scan says nothing of a large picture."""
    out = b"\xff\xd8" + segment(0xDB, b"\0" + bytes([8] * 64))
    out += segment(0xC2, struct.pack(">BHHB", 8, height, width, 1) + b"\x01\x11\0")
    for table in (b"\x00", b"\x10"):
        out += segment(0xC4, table + bytes([1] + [0] * 15) + b"\0")
    out += segment(0xDA, b"\x01\x01\0\0\0\0") + b"\0"
    return out + (segment(0xDA, b"\x01\x01\0\x01\x3f\0") + b"\0") * n_scan + b"\xff\xd9"


def gif(pixels, n_frame=1, clear=None, size=None, place=(0, 0)):
    """pixels: rows of indices below 4; red, green, blue, white.  Written without compression.  clear: the index
    that is see-through; size: of the canvas."""
    height, width = len(pixels), len(pixels[0])
    out = b"GIF89a" + struct.pack("<HHBBB", *(size or (width, height)), 0x81, 0, 0)
    out += bytes(RED[:3] + GREEN[:3] + BLUE[:3] + WHITE[:3])
    for _ in range(n_frame):
        if clear is not None:
            out += b"\x21\xf9\x04\x01\0\0" + bytes([clear, 0])
        out += b"\x2c" + struct.pack("<HHHHB", *place, width, height, 0) + b"\x02"
        codes = []
        for i, p in enumerate(p for row in pixels for p in row):
            codes += ([4] if i % 2 == 0 else []) + [p]  # a clear code before every second keeps codes 3 bits wide
        value = n = 0
        data = bytearray()
        for code in codes + [5]:
            value |= code << n
            n += 3
        while n > 0:
            data.append(value & 0xFF)
            value >>= 8
            n -= 8
        for at in range(0, len(data), 255):
            part = data[at:at + 255]
            out += bytes([len(part)]) + part
        out += b"\0"
    return out + b"\x3b"


def bmp(rows):
    """rows from the top of (r, g, b, a); 24 bits, bottom up."""
    height, width = len(rows), len(rows[0])
    body = b""
    for row in reversed(rows):
        line = b"".join(bytes((b, g, r)) for r, g, b, _ in row)
        body += line + bytes(-len(line) % 4)
    return (b"BM" + struct.pack("<IHHI", 54 + len(body), 0, 0, 54)
            + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(body), 0, 0, 0, 0) + body)


def bmp_raw(width, height, bits, body, palette=b"", packing=0):
    return (b"BM" + struct.pack("<IHHI", 54 + len(palette) + len(body), 0, 0, 54 + len(palette))
            + struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, packing, len(body), 0, 0, len(palette) // 4, 0)
            + palette + body)


def tiff(rows, orientation=1):
    height, width = len(rows), len(rows[0])
    body = b"".join(bytes(p[:3]) for row in rows for p in row)
    body += bytes(len(body) % 2)
    depths_at = 8 + len(body)
    tags = [(256, 4, 1, width), (257, 4, 1, height), (258, 3, 3, depths_at), (259, 3, 1, 1), (262, 3, 1, 2),
            (273, 4, 1, 8), (274, 3, 1, orientation), (277, 3, 1, 3), (278, 4, 1, height),
            (279, 4, 1, 3 * width * height)]
    directory = struct.pack("<H", len(tags)) + b"".join(
        struct.pack("<HHI", tag, kind, n) + (struct.pack("<HH", value, 0) if kind == 3 and n == 1
                                             else struct.pack("<I", value)) for tag, kind, n, value in tags)
    return (b"II*\0" + struct.pack("<I", depths_at + 6) + body + struct.pack("<HHH", 8, 8, 8) + directory
            + struct.pack("<I", 0))


def vp8l(width, height, rgba):
    """One colour: every prefix code has one symbol and takes no bits."""
    value = n = 0
    for number, size in ((0x2F, 8), (width - 1, 14), (height - 1, 14), (1, 1), (0, 3), (0, 1), (0, 1), (0, 1)):
        value |= number << n
        n += size
    r, g, b, a = rgba
    for symbol in (g, r, b, a, 0):
        value |= (1 | 0 << 1 | 1 << 2 | symbol << 3) << n
        n += 11
    data = value.to_bytes((n + 7) // 8 + 1, "little")
    return b"VP8L" + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)


def webp(width, height, rgba, orientation=None):
    body = vp8l(width, height, rgba)
    if orientation:
        block = exif(orientation)
        body = (b"VP8X" + struct.pack("<II", 10, 0x18) + (width - 1).to_bytes(3, "little")
                + (height - 1).to_bytes(3, "little") + body + b"EXIF" + struct.pack("<I", len(block)) + block)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def webp_with_profile(width, height, rgba, profile):
    body = (b"VP8X" + struct.pack("<II", 10, 0x30) + (width - 1).to_bytes(3, "little")
            + (height - 1).to_bytes(3, "little") + b"ICCP" + struct.pack("<I", len(profile)) + profile
            + bytes(len(profile) % 2) + vp8l(width, height, rgba))
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def webp_animation(width, height, colors, frame=None, coded=None):
    """frame: x, y (even), width, height of each picture on the canvas; coded: the size that its data says."""
    x, y, w, h = frame or (0, 0, width, height)
    body = b"VP8X" + struct.pack("<II", 10, 0x12)
    body += (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body += b"ANIM" + struct.pack("<IIH", 6, 0, 0)
    for color in colors:
        part = b"".join(v.to_bytes(3, "little") for v in (x // 2, y // 2, w - 1, h - 1, 100)) + b"\0"
        part += vp8l(*(coded or (w, h)), color)
        body += b"ANMF" + struct.pack("<I", len(part)) + part
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body
