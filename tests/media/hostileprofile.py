"""Colour profiles (ICC, version 2) from their tags up: used by picturecases.py."""
# SPDX-License-Identifier: GPL-3.0-or-later
import struct

WHITE = (0.9642, 1.0, 0.8249)
# What full red, green and blue of sRGB are under the white of profiles.
COLORS = {"r": (0.43607, 0.22249, 0.01392), "g": (0.38515, 0.71687, 0.09708), "b": (0.14307, 0.06061, 0.71410)}


def fixed(value):
    return struct.pack(">i", round(value * 65536))


def xyz(values):
    return b"XYZ \0\0\0\0" + b"".join(fixed(v) for v in values)


def curve():
    """How bright each step of sRGB is."""
    steps = [i / 1023 for i in range(1024)]
    light = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in steps]
    values = b"".join(struct.pack(">H", round(v * 65535)) for v in light)
    return b"curv\0\0\0\0" + struct.pack(">I", len(light)) + values


def rgb(order, space=b"RGB ", offset=None):
    """order: which of sRGB's colours the channels stand for, as "bgr"; offset: where every tag lies."""
    tags = {b"desc": b"desc\0\0\0\0" + struct.pack(">I", 5) + b"test\0" + bytes(78), b"cprt": b"text\0\0\0\0none\0",
            b"wtpt": xyz(WHITE)}
    for channel, color in zip((b"r", b"g", b"b"), order):
        tags[channel + b"XYZ"] = xyz(COLORS[color])
        tags[channel + b"TRC"] = curve()
    table, data = struct.pack(">I", len(tags)), b""
    start = 128 + 4 + 12 * len(tags)
    for name, body in tags.items():
        body += bytes(-len(body) % 4)
        table += name + struct.pack(">II", start + len(data) if offset is None else offset, len(body))
        data += body
    head = struct.pack(">I4sI4s4s4s12x4s", start + len(data), b"none", 0x02100000, b"mntr", space, b"XYZ ", b"acsp")
    head += bytes(28) + b"".join(fixed(v) for v in WHITE)
    return head.ljust(128, b"\0") + table + data
