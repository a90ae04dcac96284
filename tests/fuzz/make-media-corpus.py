#!/usr/bin/env python3
"""Writes the kept inputs of fuzz-worker-wire, fuzz-image-header and fuzz-sniff; run by hand when a format changes.

Usage: make-media-corpus.py (from anywhere).  A packet's input begins with its number of descriptors.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "media"))
import hostileheif as heif  # noqa: E402
import hostileimage as image  # noqa: E402


def write(folder, name, data):
    path = os.path.join(HERE, "corpus", folder)
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, name + ".bin"), "wb") as file:
        file.write(data)


def answer(name, n_fd, kind, body):
    write("worker-wire", name, bytes([n_fd]) + b"KSA1" + struct.pack("<I", kind) + body)


def main():
    for name, operation, page, password in (("load", 1, 0, b""), ("render", 2, 7, b"open sesame")):
        write("worker-wire", name, b"\x01KSQ1" + struct.pack("<IIIIIQ", operation, page, 2048, 300, len(password),
                                                             1536 << 20) + password)
    answer("progress", 0, 1, struct.pack("<II", 3, 17))
    answer("fault", 0, 2, struct.pack("<III", 8, 30000, 30000))
    answer("text", 1, 3, struct.pack("<IIIIQ", 3, 4, 0, 0, 1234) + b"ISO-8859-1".ljust(32, b"\0"))
    answer("document", 1, 3, struct.pack("<IIIIQ", 1, 0, 12, 2, 5000) + bytes(32))
    answer("pixels", 1, 4, struct.pack("<IIIIIIQ", 2, 1, 64, 32, 640, 320, 4 * 64 * 32))
    answer("done", 0, 5, b"")
    rows = [[image.RED, image.GREEN], [image.BLUE, image.WHITE]]
    for name, data in (
            ("png", image.png(2, 1, [bytes(8)], extra=image.chunk(b"eXIf", image.exif(6)))),
            ("exif", b"Exif\0\0" + image.exif(5)),
            ("gif", image.gif([[0, 1], [2, 3]], n_frame=2)),
            ("bmp", image.bmp(rows))):
        write("image-header", name, data)
    files = {"pdf": b"\0junk\n%PDF-1.7\n", "bmp": image.bmp(rows)[:40], "webp": image.webp(5, 3, image.BLUE)[:30],
             "tiff": b"MM\0+\0\x08\0\0", "heif": heif.box(b"ftyp", b"isom" + bytes(4) + b"mp42mif1heic"),
             "svg": b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- <svg> -->\n<!DOCTYPE svg [<!ENTITY a '>'>]>\n<s:svg />",
             "svg-wide": b"\xfe\xff" + "<svg\n>".encode("utf-16-be"), "text": b"plain words\n"}
    for name, data in files.items():
        write("sniff", name, data)


if __name__ == "__main__":
    main()
