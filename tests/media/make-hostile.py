#!/usr/bin/env python3
"""Writes the odd and hostile files of the media tests into a folder, and cases.ini with what each must give.

Usage: make-hostile.py FOLDER [GROUP...].  Keys of a case (a group of cases.ini is a file name, `#2` and so on behind it
for another case of the same file): expect = text|pdf|image|document or names of KsMediaError, separated by |; password;
pages; blank (pages without text); pictures (in a document);
contains, lacks (of the text, or of the error's sentence); warning (part of
it); may_warn (drawing the page may end the worker, its text stays); size (WxH before scaling); picture (WxH as
handed over); side (longest side asked for); pixels (x,y=rrggbbaa, each channel within 2); peak (MiB of resident
memory that the worker may take at most).
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import os
import sys

import hostileimage as image
import hostileoffice
import hostilepdf as pdf
import picturecases
from hostileimage import BLUE, GREEN, RED, WHITE

KOREAN, JAPANESE, ARABIC = "한국어문장", "日本語の文章", "سلام"
Y_RED, Y_BLUE = (76, 85, 255), (29, 255, 107)  # of JPEG
HALF_RED = (255, 0, 0, 128)


class Folder:
    def __init__(self, path):
        self.path, self.cases, self.peak = path, [], 0

    def write(self, name, data):
        """The path of the file."""
        path = os.path.join(self.path, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def case(self, name, data=None, **keys):
        """data None: another case of the file before, or of one made elsewhere."""
        if data is not None:
            self.write(name, data)
        keys.setdefault("peak", self.peak)
        number = sum(group.split("#")[0] == name for group, _ in self.cases)
        self.cases.append((f"{name}#{number + 1}" if number else name, keys))

    def finish(self):
        with open(os.path.join(self.path, "cases.ini"), "w", encoding="utf-8") as file:
            for group, keys in self.cases:
                file.write(f"[{group}]\n" + "".join(f"{key}={value}\n" for key, value in keys.items()) + "\n")


def add_sound_documents(out):
    out.case("one.pdf", pdf.simple(), expect="pdf", pages=1, blank=0, contains="[page 1]\\nHello page\\n",
             picture="1583x2048")
    many = pdf.many_pages(1500)
    out.case("many.pdf", many, expect="pdf", pages=1500, blank=0, contains="[page 1500]\\nLeaf 1500")
    for degrees, size in ((90, "1365x2048"), (180, "2048x1365"), (270, "1365x2048")):
        out.case(f"turned-{degrees}.pdf", pdf.rotated(degrees), expect="pdf", contains="Turned page", picture=size)
    out.case("korean.pdf", pdf.unicode_text(KOREAN), expect="pdf", blank=0, contains=KOREAN)
    out.case("japanese.pdf", pdf.unicode_text(JAPANESE), expect="pdf", contains=JAPANESE)
    out.case("arabic.pdf", pdf.unicode_text(ARABIC[::-1]), expect="pdf", contains=ARABIC)
    # Without ToUnicode: the tables of poppler-data, read behind Landlock.
    out.case("shift-jis.pdf", pdf.named_encoding("90ms-RKSJ-H", "Japan1", JAPANESE.encode("cp932")),
             expect="pdf", contains=JAPANESE)
    out.case("uhc.pdf", pdf.named_encoding("KSCms-UHC-H", "Korea1", KOREAN.encode("cp949")),
             expect="pdf", contains=KOREAN)
    empty = pdf.Pdf()
    empty.add_page("10 10 500 500 re f")
    empty.add_text_page("Second leaf")
    out.case("drawing.pdf", empty.finish(), expect="pdf", pages=2, blank=1, contains="[page 2]\\nSecond leaf",
             pixels="1000,1500=000000ff;20,20=ffffffff")
    out.case("pdf-named.png", pdf.simple("By content"), expect="pdf", contains="By content")
    out.case("junk-before.pdf", b"\0\1junk\n" * 20 + pdf.simple("After junk"), expect="pdf", contains="After junk")


def add_encrypted(out):
    for method in ("rc4", "aes128", "aes256"):
        name = f"locked-{method}.pdf"
        out.case(name, pdf.encrypted(method, b"open sesame"), expect="PASSWORD", contains=name)
        out.case(name, password="wrong", expect="WRONG_PASSWORD", contains=name)
        out.case(name, password="open sesame", expect="pdf", contains="Secret words")
        out.case(name, password="owner", expect="pdf", contains="Secret words")
        out.case(f"owner-{method}.pdf", pdf.encrypted(method, b""), expect="pdf", contains="Secret words")


def add_broken_documents(out):
    whole = pdf.many_pages(3)
    out.case("cut.pdf", whole[:len(whole) // 2], expect="pdf|DAMAGED")
    out.case("no-xref.pdf", whole[:whole.rindex(b"xref\n0 ")], expect="pdf|DAMAGED")
    out.case("bad-startxref.pdf", whole.replace(b"startxref\n", b"startxref\n9"), expect="pdf", contains="Leaf 3")
    out.case("head-only.pdf", b"%PDF-1.7\n", expect="DAMAGED", contains="head-only.pdf")
    out.case("noise.pdf", b"%PDF-1.4\n" + bytes((i * 131 + i // 7) & 255 for i in range(20000)), expect="DAMAGED")
    looped = pdf.Pdf()
    looped.add_text_page("Once around")
    out.case("xref-loop.pdf", looped.finish(prev="itself"), expect="pdf|DAMAGED")
    out.case("no-pages.pdf", pdf.Pdf().finish(), expect="EMPTY", contains="no pages")
    out.case("deep-tree.pdf", pdf.deep_tree(20000), expect="pdf|DAMAGED|WORKER|EMPTY")
    out.case("tree-loop.pdf", pdf.tree_loop(), expect="pdf|DAMAGED|EMPTY|WORKER")
    out.case("count-lie.pdf", pdf.count_lie(900000), expect="pdf|DAMAGED|EMPTY")
    out.case("count-negative.pdf", pdf.count_lie(-5), expect="pdf|EMPTY|DAMAGED")
    out.case("flate-bomb.pdf", pdf.flate_bomb(100), expect="pdf|TOO_LARGE|WORKER")
    out.case("image-bomb.pdf", pdf.image_bomb(), expect="pdf", contains="Beside the bomb", may_warn=1)
    out.case("object-stream-loop.pdf", pdf.object_stream_loop(), expect="EMPTY|DAMAGED|WORKER")
    out.case("form-loop.pdf", pdf.recursive_form(), expect="pdf", contains="Around the circle", may_warn=1)
    out.case("glyph-loop.pdf", pdf.recursive_glyph(), expect="pdf", contains="Letter of itself", may_warn=1)
    out.case("actions.pdf", pdf.with_actions(), expect="pdf", contains="Quiet page", lacks="app.alert")
    out.case("embedded.pdf", pdf.with_embedded_file(), expect="pdf", contains="Outer page", lacks="INNER")
    for name, box in (("huge", "[0 0 1e9 1e9]"), ("nan", "[0 0 nan inf]"), ("nothing", "[0 0 0 0]"),
                      ("negative", "[600 700 0 0]"), ("thread", "[0 0 100000 1]")):
        out.case(f"box-{name}.pdf", pdf.simple("In a box", box=box), expect="pdf", pages=1)


def add_texts(out):
    out.case("plain.md", "# Überschrift\r\nZeile\n".encode(), expect="text", contains="# Überschrift\\nZeile\\n")
    out.case("one-bad-byte.txt", ("grüße " * 20).encode() + b"\xff" + "schön".encode(), expect="text",
             contains="\ufffdschön", warning="replaced")
    out.case("lone-surrogates.txt", b"\xff\xfea\0\x00\xd8b\0\x00\xdcc\0", expect="text", contains="a\ufffdb\ufffdc",
             warning="replaced")
    out.case("odd-utf16.txt", b"\xff\xfea\0b", expect="UNKNOWN_TYPE", contains="odd-utf16.txt")
    out.case("latin1.txt", ("Größe, Übung und süße Äpfel\n" * 5).encode("latin-1"), expect="text",
             contains="Größe, Übung und süße Äpfel")
    out.case("late-latin1.txt", b"plain line\n" * 200000 + "Größe, Übung und süße Äpfel\n".encode("latin-1"),
             expect="text", contains="Größe, Übung und süße Äpfel")
    out.case("shift-jis.txt", (JAPANESE * 20).encode("shift_jis"), expect="text", contains=JAPANESE)
    out.case("nothing.txt", b"", expect="EMPTY", contains="nothing.txt is empty")
    out.case("zeros.txt", bytes(100000), expect="UNKNOWN_TYPE")
    out.case("zero-in-text.txt", b"some text\0and more of it\n" * 50, expect="UNKNOWN_TYPE")
    out.case("controls.txt", b"ab\x01\x02cd\x03\x04" * 100, expect="UNKNOWN_TYPE")
    out.case("program", b"\x7fELF\x02\x01\x01" + bytes(57) + bytes(range(256)) * 4, expect="UNKNOWN_TYPE")
    out.case("long.txt", b"seventy mebibytes\n" * (70 * 1024 * 1024 // 18), expect="TOO_LARGE", contains="64 MiB")
    out.case("grows.txt", ("ÿ" * (40 * 1024 * 1024)).encode("latin-1"), expect="TOO_LARGE", contains="64 MiB")
    out.case("one-line.txt", b"x" * (10 * 1024 * 1024), expect="text", contains="xxxx")
    out.case("about-pdf.c", b"/* A file starts with %PDF-1.7 and so on. */\n", expect="text", contains="%PDF-1.7")
    out.case("escapes.log", b"\x1b[31mred\x1b[0m line\n" * 3, expect="text", contains="red")


def add_pictures(out):
    square = [[RED, GREEN], [BLUE, HALF_RED]]
    four = "0,0=ff0000ff;1,0=00ff00ff;0,1=0000ffff"
    out.case("rgba.png", image.png_rgba(square), expect="image", size="2x2", picture="2x2",
             pixels=four + ";1,1=ff7f7fff", warning="see-through")
    wide = [b"".join(b"".join(v.to_bytes(2, "big") for v in (257 * p[0], 257 * p[1], 257 * p[2])) for p in row)
            for row in square]
    out.case("deep.png", image.png(2, 2, wide, depth=16, color=2), expect="image", pixels=four)
    out.case("palette.png", image.png(2, 2, [b"\x00\x01", b"\x02\x00"], color=3,
             extra=image.chunk(b"PLTE", bytes(RED[:3] + GREEN[:3] + BLUE[:3])) + image.chunk(b"tRNS", b"\xff\x80")),
             expect="image", pixels="0,0=ff0000ff;1,0=7fff7fff;0,1=0000ffff", warning="see-through")
    out.case("grey.png", image.png(2, 1, [b"\x00\xc0"], color=0), expect="image", pixels="0,0=000000ff;1,0=c0c0c0ff")
    out.case("bits.png", image.png(2, 1, [b"\x40"], depth=1, color=0), expect="image",
             pixels="0,0=000000ff;1,0=ffffffff")
    out.case("dot.png", image.png_rgba([[BLUE]]), expect="image", size="1x1", pixels="0,0=0000ffff")
    out.case("column.png", image.png_rgba([[RED]] * 2500 + [[BLUE]] * 2500), expect="image", size="1x5000",
             picture="1x2048", pixels="0,10=ff0000ff;0,2040=0000ffff")
    out.case("row.png", image.png_rgba([[RED] * 3000 + [BLUE] * 3000]), expect="image", size="6000x1",
             picture="2048x1", pixels="10,0=ff0000ff;2040,0=0000ffff")
    out.case("turned.png", image.png(2, 1, [bytes(RED + BLUE)], extra=image.chunk(b"eXIf", image.exif(6))),
             expect="image", size="1x2", pixels="0,0=ff0000ff;0,1=0000ffff")
    out.case("picture.txt", image.png_rgba(square), expect="image", size="2x2", warning="see-through")
    big = [[(x & 255, y & 255, (x * y) & 255, 255) for x in range(200)] for y in range(200)]
    cut = image.png_rgba(big)
    out.case("cut.png", cut[:len(cut) // 2], expect="image", size="200x200", warning="ends early",
             pixels="7,3=070315ff;199,9=c709ffff")
    out.case("big.png", cut, expect="image", size="200x200", picture="64x64", side=64)
    out.case("bomb.png", image.png(30000, 30000, [bytes(3750)] * 30000, depth=1, color=0), expect="TOO_LARGE",
             contains="30000 x 30000")
    out.case("lie.png", image.png(2147483647, 2147483647, [b"\0"], depth=1, color=0), expect="TOO_LARGE|DAMAGED")
    out.case("nothing-wide.png", image.png(0, 5, [b""]), expect="DAMAGED")
    out.case("head.png", cut[:20], expect="DAMAGED", contains="head.png is damaged")


# Red on the left, blue on the right, as it must be shown: (red's place, blue's place, size) by orientation.
TURNS = {1: ("2,2", "12,2", "16x8"), 2: ("12,2", "2,2", "16x8"), 3: ("12,2", "2,2", "16x8"),
         4: ("2,2", "12,2", "16x8"), 5: ("2,2", "2,12", "8x16"), 6: ("2,2", "2,12", "8x16"),
         7: ("2,12", "2,2", "8x16"), 8: ("2,12", "2,2", "8x16")}
# Red above, blue below: tells what mirrors the other way.
TURNS_DOWN = {1: ("2,2", "2,12", "8x16"), 2: ("2,2", "2,12", "8x16"), 3: ("2,12", "2,2", "8x16"),
              4: ("2,12", "2,2", "8x16"), 5: ("2,2", "12,2", "16x8"), 6: ("12,2", "2,2", "16x8"),
              7: ("12,2", "2,2", "16x8"), 8: ("2,2", "12,2", "16x8")}


def add_photographs(out):
    for name, turns, blocks in (("across", TURNS, [[Y_RED, Y_BLUE]]), ("down", TURNS_DOWN, [[Y_RED], [Y_BLUE]])):
        for number, (red, blue, size) in turns.items():
            out.case(f"{name}-{number}.jpg", image.jpeg(blocks, orientation=number), expect="image", size=size,
                     picture=size, pixels=f"{red}=fe0000ff;{blue}=0000feff")
    out.case("grey.jpg", image.jpeg([[(200,), (10,)]]), expect="image", pixels="2,2=c8c8c8ff;12,2=0a0a0aff")
    out.case("progressive.jpg", image.jpeg([[Y_RED, Y_BLUE]], progressive=True), expect="image",
             pixels="2,2=fe0000ff;12,2=0000feff")
    # As Adobe writes them: inverted.  Cyan and black ink.
    out.case("cmyk.jpg", image.jpeg([[(0, 255, 255, 255), (255, 255, 255, 0)]], adobe=0), expect="image",
             pixels="2,2=00ffffff;12,2=000000ff")
    rows = [[((x * 37 + y * 11) & 255, 128, 128) for x in range(60)] for y in range(60)]
    whole = image.jpeg(rows)
    out.case("cut.jpg", whole[:len(whole) // 2], expect="image", size="480x480", warning="ends early")
    out.case("head.jpg", whole[:100], expect="DAMAGED")
    square = [[0, 1, 2], [3, 2, 1]]
    three = "0,0=ff0000ff;1,0=00ff00ff;2,0=0000ffff;0,1=ffffffff"
    out.case("still.gif", image.gif(square), expect="image", size="3x2", pixels=three)
    out.case("moving.gif", image.gif(square, n_frame=3), expect="image", pixels=three, warning="animation")
    colours = [[RED, GREEN, BLUE], [WHITE, BLUE, GREEN]]
    out.case("rows.bmp", image.bmp(colours), expect="image", size="3x2", pixels=three)
    out.case("cut.bmp", image.bmp(big_rows())[:9000], expect="image|DAMAGED", size="100x60")
    out.case("rows.tiff", image.tiff(colours), expect="image", size="3x2", pixels=three)
    out.case("turned.tiff", image.tiff(colours, orientation=3), expect="image", size="3x2",
             pixels="2,1=ff0000ff;2,0=00ff00ff;0,1=0000ffff".replace("2,0=00ff00ff", "1,1=00ff00ff"))
    out.case("flat.webp", image.webp(5, 3, (10, 200, 30, 128)), expect="image", size="5x3", pixels="4,2=84e38eff",
             warning="see-through")
    out.case("turned.webp", image.webp(5, 3, BLUE, orientation=6), expect="image", size="3x5", pixels="0,4=0000ffff")
    out.case("moving.webp", image.webp_animation(4, 4, [GREEN, RED]), expect="image", size="4x4",
             pixels="0,0=00ff00ff", warning="animation")
    out.case("cut.webp", image.webp(5, 3, BLUE)[:18], expect="DAMAGED")


def big_rows():
    return [[(x & 255, y & 255, 9, 255) for x in range(100)] for y in range(60)]


def add_seeds(out):
    hostileoffice.add_seeds(out)
    picturecases.add_seeds(out)
    out.case("seed.pdf", pdf.simple("Seed"), expect="pdf")
    out.case("seed.txt", "# Überschrift\r\nZeile\n".encode("utf-16"), expect="text")


# The groups of files, each with the bound of memory for the cases that name none of their own.
GROUPS = {"sound": (add_sound_documents, 96), "encrypted": (add_encrypted, 96), "broken": (add_broken_documents, 200),
          "texts": (add_texts, 200), "pictures": (add_pictures, 64), "photographs": (add_photographs, 64)}
GROUPS["offices"] = (hostileoffice.add_offices, 96)
GROUPS["scans"] = (hostileoffice.add_scans, 96)
GROUPS.update({name: (add, 64) for name, add in picturecases.GROUPS.items()})


def main():
    out = Folder(sys.argv[1])
    for name in sys.argv[2:] or GROUPS:
        add, out.peak = GROUPS[name] if name != "seeds" else (add_seeds, 0)
        add(out)
    out.finish()


if __name__ == "__main__":
    main()
