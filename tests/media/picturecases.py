"""Cases of pictures for make-hostile.py: what is odd and what is hostile, format by format."""
# SPDX-License-Identifier: GPL-3.0-or-later
import os
import struct
import zlib

import hostileheif as heif
import hostileimage as image
import hostileprofile as profile
import hostilesvg as svg
import hostiletiff as tiff
from hostileimage import BLUE, GREEN, RED, WHITE

import codedpictures as coded

SQUARE = [[RED, GREEN], [BLUE, WHITE]]
FOUR = "0,0=ff0000ff;1,0=00ff00ff;0,1=0000ffff;1,1=ffffffff"
# Of a coded picture: red, green above blue, white, each 32 x 32.
QUADRANTS = "16,16=ff0000ff;48,16=00ff00ff;16,48=0000ffff;48,48=ffffffff"
SEE_THROUGH = "see-through"


SWAPPED, PLAIN = profile.rgb("bgr"), profile.rgb("rgb")


def add_profiles(out):
    """A profile in which red means blue; sRGB itself; what is no profile for the picture, or none at all."""
    swapped = "0,0=0000ffff;1,0=00ff00ff;0,1=ff0000ff;1,1=ffffffff"
    rows = [bytes(sum(r, ())) for r in SQUARE]
    for name, icc, pixels in (("swapped", SWAPPED, swapped), ("srgb", PLAIN, FOUR), ("cut", SWAPPED[:200], FOUR),
                              ("noise", bytes(i * 7 & 255 for i in range(3000)), FOUR),
                              ("inks", profile.rgb("bgr", space=b"CMYK"), FOUR),
                              ("far", profile.rgb("bgr", offset=1 << 30), FOUR)):
        packed = image.chunk(b"iCCP", b"p\0\0" + zlib.compress(icc))
        out.case(f"profile-{name}.png", image.png(2, 2, rows, extra=packed), expect="image", pixels=pixels)
    tones = [bytes(v for x in range(64) for v in (x * 4, y * 4, 255 - (x + y) * 2, 255)) for y in range(64)]
    out.case("tones.png", image.png(64, 64, tones), expect="image", size="64x64")
    for name, icc in (("srgb", PLAIN), ("swapped", SWAPPED)):
        packed = image.chunk(b"iCCP", b"p\0\0" + zlib.compress(icc))
        out.case(f"tones-{name}.png", image.png(64, 64, tones, extra=packed), expect="image", size="64x64")
    half = image.png(2, 1, [bytes((255, 0, 0, 128)) + bytes(BLUE)],
                     extra=image.chunk(b"iCCP", b"p\0\0" + zlib.compress(SWAPPED)))
    out.case("profile-alpha.png", half, expect="image", pixels="1,0=ff0000ff", warning=SEE_THROUGH)
    red, blue = (76, 85, 255), (29, 255, 107)
    marks = image.segment(0xE2, b"ICC_PROFILE\0\1\2" + SWAPPED[:100]) + image.segment(
        0xE2, b"ICC_PROFILE\0\2\2" + SWAPPED[100:])
    out.case("profile.jpg", image.jpeg([[red, blue]], extra=marks), expect="image", size="16x8",
             pixels="2,2=0000ffff;12,2=ff0000ff")
    lost = image.segment(0xE2, b"ICC_PROFILE\0\2\3" + SWAPPED[100:])
    out.case("profile-lost.jpg", image.jpeg([[red, blue]], extra=lost), expect="image", pixels="2,2=fe0000ff")
    out.case("profile.tiff", tiff.single(2, 2, [tiff.rgb(SQUARE)], t34675=(tiff.UNDEFINED, list(SWAPPED))),
             expect="image", pixels=swapped)
    out.case("profile.webp", image.webp_with_profile(5, 3, BLUE, SWAPPED), expect="image", size="5x3",
             pixels="1,1=ff0000ff")
    for name, picture, brand in (("profile.heic", coded.HEVC, b"heic"), ("profile.avif", coded.AV1, b"avif")):
        out.case(name, heif.still(picture, heif.nclx(), heif.icc(SWAPPED), brand=brand), expect="image",
                 pixels="16,16=0000ffff;48,16=00ff00ff;16,48=ff0000ff;48,48=ffffffff")


def add_png(out):
    rows = [bytes((x & 255, y & 255, 9)) for y in range(64) for x in range(64)]
    lines = [b"".join(rows[64 * y:64 * y + 64]) for y in range(64)]
    out.case("interlaced.png", image.png_interlaced(64, 64, lines, 3), expect="image", size="64x64",
             pixels="7,3=070309ff;63,63=3f3f09ff")
    out.case("grey-alpha.png", image.png(2, 1, [b"\xc8\x00\x00\xff"], color=4), expect="image",
             pixels="0,0=ffffffff;1,0=000000ff", warning=SEE_THROUGH)
    deep = struct.pack(">8H", 65535, 0, 0, 32768, 0, 0, 0, 65535)
    out.case("deep-alpha.png", image.png(2, 1, [deep], depth=16, color=6), expect="image",
             pixels="0,0=ff7f7fff;1,0=000000ff", warning=SEE_THROUGH)
    out.case("opaque.png", image.png_rgba([[RED, BLUE]]), expect="image", pixels="0,0=ff0000ff;1,0=0000ffff")
    two = image.png(4, 1, [b"\x1b"], depth=2, color=0)
    out.case("two-bits.png", two, expect="image", pixels="0,0=000000ff;1,0=555555ff;3,0=ffffffff")
    out.case("no-palette.png", image.png(2, 1, [b"\0\1"], color=3), expect="image|DAMAGED", size="2x1")
    out.case("palette-over.png", image.png(2, 1, [b"\0\xfe"], color=3,
             extra=image.chunk(b"PLTE", bytes(RED[:3]))), expect="image|DAMAGED", size="2x1")
    wrong = bytearray(image.png_rgba(SQUARE))
    wrong[-16] ^= 0x55  # the checksum of the data
    out.case("checksum.png", bytes(wrong), expect="image|DAMAGED", size="2x2")
    out.case("no-data.png", image.png_rgba(SQUARE)[:33] + image.chunk(b"IEND", b""), expect="DAMAGED")
    bomb = image.chunk(b"zTXt", b"note\0\0" + zlib.compress(bytes(100 << 20), 9))
    out.case("text-bomb.png", image.png(2, 2, [bytes(sum(r, ())) for r in SQUARE], extra=bomb), expect="image",
             pixels=FOUR, peak=256)
    profile = image.chunk(b"iCCP", b"bomb\0\0" + zlib.compress(bytes(100 << 20), 9))
    out.case("profile-bomb.png", image.png(2, 2, [bytes(sum(r, ())) for r in SQUARE], extra=profile),
             expect="image|DAMAGED", peak=256)
    clear = image.chunk(b"PLTE", bytes(RED[:3] + BLUE[:3])) + image.chunk(b"tRNS", b"\0\xff")
    out.case("largest.png", image.png(10000, 10000, [bytes(1250)] * 10000, depth=1, color=3, extra=clear),
             expect="image", size="10000x10000", picture="2048x2048", warning=SEE_THROUGH, pixels="9,9=ffffffff",
             peak=640)
    out.case("one-over.png", image.png(10001, 10000, [bytes(1251)], depth=1, color=0), expect="TOO_LARGE",
             contains="10001 x 10000")


def add_jpeg(out):
    quiet = [[(128, 128, 128)]]
    red, blue = (76, 85, 255), (29, 255, 107)
    out.case("ycck.jpg", image.jpeg([[(76, 85, 255, 255), (29, 255, 107, 0)]], adobe=2), expect="image",
             pixels="12,2=000000ff", size="16x8")
    out.case("rgb.jpg", image.jpeg([[(255, 0, 0), (0, 0, 255)]], adobe=0), expect="image",
             pixels="2,2=ff0000ff;12,2=0000ffff")
    whole = image.jpeg([[red, blue]], progressive=True)
    out.case("cut-progressive.jpg", whole[:-6], expect="image|DAMAGED", size="16x8")
    rows = [[((x * 37 + y * 11) & 255, 128, 128) for x in range(60)] for y in range(60)]
    scans = image.jpeg(rows, progressive=True)
    out.case("cut-scan.jpg", scans[:len(scans) // 2], expect="image", size="480x480", warning="ends early",
             pixels="4,4=000000ff;244,4=565656ff")
    out.case("head.jpg", b"\xff\xd8\xff\xe0", expect="DAMAGED")
    out.case("fill-bytes.jpg", b"\xff\xd8" + b"\xff" * 100000, expect="DAMAGED")
    out.case("no-scan.jpg", whole[:whole.index(b"\xff\xda")] + b"\xff\xd9", expect="DAMAGED")
    lie = bytearray(image.jpeg(quiet))
    at = lie.index(b"\xff\xc0") + 5
    lie[at:at + 4] = struct.pack(">HH", 65500, 65500)
    out.case("bomb.jpg", bytes(lie), expect="TOO_LARGE", contains="65500 x 65500")
    lie[at:at + 4] = struct.pack(">HH", 10000, 10000)
    out.case("nearly-all-missing.jpg", bytes(lie), expect="image", size="10000x10000", warning="ends early", peak=400)
    lie[at:at + 4] = struct.pack(">HH", 0, 8)
    out.case("no-height.jpg", bytes(lie), expect="DAMAGED")
    wide = bytearray(image.jpeg(quiet))
    wide[wide.index(b"\xff\xc0") + 4] = 12
    out.case("twelve-bits.jpg", bytes(wide), expect="UNKNOWN_TYPE", contains="12 bits")
    loop = b"MM\0*" + struct.pack(">IHHHII", 8, 1, 0x8769, 4, 1, 8) + struct.pack(">I", 8)
    out.case("exif-loop.jpg", image.jpeg([[red, blue]], extra=image.segment(0xE1, b"Exif\0\0" + loop)),
             expect="image", size="16x8", pixels="2,2=fe0000ff")
    out.case("exif-many.jpg", image.jpeg([[red, blue]], extra=image.segment(
        0xE1, b"Exif\0\0MM\0*" + struct.pack(">IH", 8, 65535) + bytes(60000))), expect="image", size="16x8")
    out.case("exif-nine.jpg", image.jpeg([[red, blue]], orientation=9), expect="image", size="16x8")
    out.case("scan-bomb.jpg", image.jpeg_scan_bomb(8000, 8000, 3000), expect="image|DAMAGED", peak=200)
    out.case("thumbnail.jpg", image.jpeg([[red, blue]], extra=image.segment(
        0xE1, b"Exif\0\0" + image.exif(1) + image.jpeg(quiet))), expect="image", size="16x8",
             pixels="2,2=fe0000ff;12,2=0000feff")


def add_gif_bmp(out):
    out.case("clear.gif", image.gif([[0, 1], [2, 3]], clear=1), expect="image",
             pixels="0,0=ff0000ff;1,0=ffffffff;0,1=0000ffff", warning=SEE_THROUGH)
    out.case("bomb.gif", image.gif([[0]], size=(65535, 65535)), expect="TOO_LARGE", contains="65535 x 65535")
    out.case("outside.gif", image.gif([[0, 1], [2, 3]], place=(60000, 60000)), expect="image|DAMAGED")
    plain = image.gif([[0, 1], [2, 3]])
    out.case("codes.gif", plain[:-8] + b"\xff" * 6 + b"\0\x3b", expect="image|DAMAGED")
    out.case("no-picture.gif", plain[:25] + b"\x3b", expect="DAMAGED")
    out.case("endless-blocks.gif", plain[:25] + b"\x21\xfe" + b"\xff" * 200000, expect="DAMAGED")
    out.case("top-down.bmp", image.bmp_raw(2, -2, 24, b"\0\0\xff\0\xff\0\0\0" + b"\xff\0\0\xff\xff\xff\0\0"),
             expect="image", size="2x2", pixels=FOUR)
    out.case("bits.bmp", image.bmp_raw(2, 1, 1, b"\x40\0\0\0", palette=b"\0\0\0\0\xff\xff\xff\0"), expect="image",
             size="2x1", pixels="0,0=000000ff;1,0=ffffffff")
    out.case("runs.bmp", image.bmp_raw(4, 1, 8, b"\4\1\0\1", palette=b"\0\0\0\0\0\0\xff\0", packing=1),
             expect="image", size="4x1", pixels="0,0=ff0000ff;3,0=ff0000ff")
    out.case("endless-runs.bmp", image.bmp_raw(4, 4, 8, b"\xff\1" * 50000, palette=b"\0\0\0\0\0\0\xff\0", packing=1),
             expect="image|DAMAGED", size="4x4")
    out.case("bomb.bmp", image.bmp_raw(100000, 100000, 1, b"", palette=bytes(8)), expect="TOO_LARGE")
    out.case("no-rows.bmp", image.bmp_raw(5000, 5000, 24, b""), expect="image|DAMAGED", size="5000x5000", peak=200)
    out.case("wide.bmp", image.bmp_raw(0x7FFFFFFF, 1, 24, b""), expect="TOO_LARGE|DAMAGED")
    out.case("lowest.bmp", image.bmp_raw(1, -0x80000000, 24, b""), expect="TOO_LARGE|DAMAGED")


def add_tiff(out):
    packed = zlib.compress(tiff.rgb(SQUARE))
    out.case("strips.tiff", tiff.single(2, 2, [tiff.rgb([r]) for r in SQUARE], rows=1), expect="image", size="2x2",
             pixels=FOUR)
    out.case("big-endian.tiff", tiff.single(2, 2, [packed], order=">", compression=tiff.DEFLATE), expect="image",
             size="2x2", pixels=FOUR)
    out.case("big-tiff.tiff", tiff.single(2, 2, [packed], big=True, compression=tiff.DEFLATE), expect="image",
             size="2x2", pixels=FOUR)
    wide = [[(x & 255, y & 255, 9, 255) for x in range(40)] for y in range(30)]
    out.case("tiles.tiff", tiff.tiled(wide), expect="image", size="40x30", pixels="39,29=271d09ff;17,16=111009ff")
    deep = b"".join(struct.pack("<3H", *(257 * v for v in p[:3])) for row in SQUARE for p in row)
    out.case("deep.tiff", tiff.single(2, 2, [deep], depth=(16, 16, 16)), expect="image", pixels=FOUR)
    out.case("fax-bits.tiff", tiff.single(8, 1, [b"\xf0"], depth=(1,), photometric=0), expect="image",
             pixels="0,0=000000ff;7,0=ffffffff")
    table = [v for i in range(3) for v in (RED[i] * 257, BLUE[i] * 257)]
    out.case("palette.tiff", tiff.single(2, 1, [b"\x40"], depth=(1,), photometric=3, t320=(tiff.SHORT, table)),
             expect="image", pixels="0,0=ff0000ff;1,0=0000ffff")
    out.case("inks.tiff", tiff.single(2, 1, [b"\xff\0\0\0\0\0\0\xff"], depth=(8,) * 4, photometric=5),
             expect="image", pixels="0,0=00ffffff;1,0=000000ff")
    out.case("planes.tiff", tiff.single(2, 1, [b"\xff\0", b"\0\0", b"\0\xff"], t284=(tiff.SHORT, [2])),
             expect="image", pixels="0,0=ff0000ff;1,0=0000ffff")
    for kind, half in ((1, b"\x80\0\0\x80"), (2, b"\xff\0\0\x80")):
        whole = tiff.single(2, 1, [half + bytes(BLUE)], depth=(8,) * 4, t338=(tiff.SHORT, [kind]))
        out.case(f"alpha-{kind}.tiff", whole, expect="image", pixels="0,0=ff7f7fff;1,0=0000ffff", warning=SEE_THROUGH)
    two = [[RED, BLUE]]
    for orientation, (size, pixels) in {2: ("2x1", "1,0=ff0000ff"), 6: ("1x2", "0,0=ff0000ff;0,1=0000ffff"),
                                        8: ("1x2", "0,1=ff0000ff;0,0=0000ffff")}.items():
        out.case(f"turned-{orientation}.tiff", tiff.single(2, 1, [tiff.rgb(two)], t274=(tiff.SHORT, [orientation])),
                 expect="image", size=size, pixels=pixels)
    leaves = tiff.Tiff()
    first = leaves.add_picture(2, 2, [tiff.rgb(SQUARE)])
    leaves.add_picture(1, 1, [bytes(BLUE[:3])])
    out.case("leaves.tiff", leaves.finish(), expect="image", size="2x2", pixels=FOUR, warning="first picture")
    out.case("chain-loop.tiff", leaves.loop(first).finish(), expect="image", size="2x2", pixels=FOUR,
             warning="first picture")
    small = tiff.Tiff()
    small.add_picture(2, 2, [tiff.rgb(SQUARE)])
    small.add_picture(1, 1, [bytes(BLUE[:3])], t254=(tiff.LONG, [1]))
    out.case("with-thumbnail.tiff", small.finish(), expect="image", size="2x2", pixels=FOUR)
    own = tiff.Tiff()
    out.case("own-loop.tiff", own.loop(own.add_picture(2, 2, [tiff.rgb(SQUARE)])).finish(), expect="image|DAMAGED",
             size="2x2")
    rows = [[(x & 255, y & 255, 9, 255) for x in range(64)] for y in range(64)]
    strips = [tiff.rgb(rows[y:y + 8]) for y in range(0, 64, 8)]
    lost = tiff.single(64, 64, strips[:4] + [s[:5] for s in strips[4:]], rows=8)
    out.case("lost-strips.tiff", lost, expect="image", size="64x64", warning="ends early", pixels="7,3=070309ff")
    out.case("cut.tiff", lost[:500], expect="DAMAGED")
    out.case("head.tiff", b"II*\0\x08\0\0\0", expect="DAMAGED")
    far = bytearray(tiff.single(2, 2, [packed], compression=tiff.DEFLATE))
    far[4:8] = struct.pack("<I", 0xFFFFFFF0)
    out.case("far-directory.tiff", bytes(far), expect="DAMAGED")
    out.case("many-tags.tiff", tiff.single(2, 2, [tiff.rgb(SQUARE)]).replace(b"\x0a\0\0\1", b"\xff\xff\0\1"),
             expect="image|DAMAGED")
    out.case("bomb.tiff", tiff.single(30000, 30000, [b"\0"], depth=(1,), photometric=0), expect="TOO_LARGE",
             contains="30000 x 30000")
    out.case("nothing-wide.tiff", tiff.single(0, 2, [b"\0"]), expect="DAMAGED")
    out.case("far-strip.tiff", tiff.single(2, 2, [tiff.rgb(SQUARE)], t273=(tiff.LONG, [0x7FFFFFFF])),
             expect="image|DAMAGED", size="2x2")
    out.case("huge-strip.tiff", tiff.single(2, 2, [tiff.rgb(SQUARE)], t279=(tiff.LONG, [0xFFFFFFFF])),
             expect="image|DAMAGED", size="2x2")
    out.case("deflate-bomb.tiff", tiff.single(2, 2, [zlib.compress(bytes(100 << 20), 9)], compression=tiff.DEFLATE),
             expect="image|DAMAGED", size="2x2")
    out.case("fractions.tiff", tiff.single(1, 1, [bytes(12)], depth=(32,) * 3, t339=(tiff.SHORT, [3] * 3)),
             expect="UNKNOWN_TYPE")
    out.case("compression.tiff", tiff.single(2, 2, [tiff.rgb(SQUARE)], compression=9999),
             expect="UNKNOWN_TYPE|DAMAGED")


def add_webp(out):
    out.case("lossy.webp", coded.WEBP_LOSSY, expect="image", size="64x64", pixels=QUADRANTS)
    out.case("cut-lossy.webp", coded.WEBP_LOSSY[:len(coded.WEBP_LOSSY) * 2 // 3], expect="image", size="64x64",
             warning="ends early")
    out.case("alpha.webp", image.webp(5, 3, (200, 10, 30, 0)), expect="image", size="5x3", pixels="2,2=ffffffff",
             warning=SEE_THROUGH)
    out.case("one-frame.webp", image.webp_animation(4, 4, [GREEN]), expect="image", size="4x4", pixels="3,3=00ff00ff")
    out.case("placed.webp", image.webp_animation(8, 8, [GREEN, RED], frame=(2, 4, 4, 4)), expect="image", size="8x8",
             pixels="2,4=00ff00ff;0,0=ffffffff;5,7=00ff00ff;6,7=ffffffff", warning="animation")
    out.case("outside.webp", image.webp_animation(4, 4, [GREEN, RED], frame=(2, 2, 4, 4)), expect="DAMAGED")
    out.case("mismatch.webp", image.webp_animation(8, 8, [GREEN], frame=(0, 0, 8, 8), coded=(4, 4)),
             expect="image|DAMAGED")
    out.case("bomb.webp", image.webp(16383, 16383, BLUE), expect="TOO_LARGE", contains="16383 x 16383")
    out.case("largest.webp", image.webp(10000, 10000, BLUE), expect="image", size="10000x10000",
             picture="2048x2048", pixels="9,9=0000ffff;2047,2047=0000ffff", peak=1000)
    vast = image.webp_animation(4, 4, [GREEN]).replace(b"\x03\0\0\x03\0\0ANIM", b"\xff\xff\xff\xff\xff\xffANIM")
    out.case("vast-canvas.webp", vast, expect="TOO_LARGE|DAMAGED")
    long = bytearray(image.webp(5, 3, BLUE))
    long[4:8] = struct.pack("<I", 0xFFFFFFF0)
    out.case("length.webp", bytes(long), expect="image|DAMAGED", size="5x3")
    out.case("empty.webp", b"RIFF\x04\0\0\0WEBP", expect="DAMAGED")
    out.case("noise.webp", image.webp(50, 30, BLUE)[:25] + bytes((i * 131 + i // 7) & 255 for i in range(2000)),
             expect="image|DAMAGED")
    out.case("webp-named.png", image.webp(5, 3, BLUE), expect="image", size="5x3", pixels="1,1=0000ffff")
    pages = image.webp_animation(4, 4, [GREEN] * 2000)
    out.case("many-frames.webp", pages, expect="image", size="4x4", warning="animation")


# Quarters of a circle against the clock: where the quadrants are then.
QUARTERS = {1: "16,16=00ff00ff;48,16=ffffffff;16,48=ff0000ff;48,48=0000ffff",
            2: "16,16=ffffffff;48,16=0000ffff;16,48=00ff00ff;48,48=ff0000ff",
            3: "16,16=0000ffff;48,16=ff0000ff;16,48=ffffffff;48,48=00ff00ff"}


def add_heif(out):
    for name, picture, brand in (("photo.heic", coded.HEVC, b"heic"), ("photo.avif", coded.AV1, b"avif")):
        whole = heif.still(picture, heif.pixi(8, 8, 8), heif.nclx(), brand=brand)
        out.case(name, whole, expect="image", size="64x64", picture="64x64", pixels=QUADRANTS)
        out.case("cut-" + name, whole[:len(whole) - len(picture.data) // 2], expect="DAMAGED|image")
        for quarters, pixels in QUARTERS.items():
            out.case(f"turned-{quarters}-{name}", heif.still(picture, heif.nclx(), heif.irot(quarters), brand=brand),
                     expect="image", pixels=pixels)
        tiles = heif.Heif(brand)
        tiles.add(b"grid", heif.grid(2, 2, 100, 90), heif.ispe(100, 90))
        parts = [tiles.add_coded(picture, heif.nclx(), hidden=True) for _ in range(4)]
        tiles.refer(b"dimg", 1, *parts)
        out.case("grid-" + name, tiles.finish(), expect="image", size="100x90",
                 pixels="16,16=ff0000ff;80,16=ff0000ff;80,80=ff0000ff;48,48=ffffffff;16,80=ff0000ff")
        own = heif.Heif(brand)
        own.add(b"grid", heif.grid(1, 1, 64, 64), heif.ispe(64, 64))
        own.refer(b"dimg", 1, 1)
        out.case("own-grid-" + name, own.finish(), expect="DAMAGED|UNKNOWN_TYPE")
        out.case("bomb-" + name, heif.still(picture, size=(30000, 30000), brand=brand), expect="TOO_LARGE",
                 contains="30000 x 30000")
        out.case("lie-" + name, heif.still(picture, size=(6, 4), brand=brand), expect="image|DAMAGED")
        out.case("far-" + name, heif.still(picture, brand=brand, extent=1 << 30), expect="DAMAGED")
        noise = picture._replace(data=bytes((i * 131 + i // 7) & 255 for i in range(len(picture.data))))
        out.case("noise-" + name, heif.still(noise, brand=brand), expect="DAMAGED|UNKNOWN_TYPE")
    out.case("mirrored.heic", heif.still(coded.HEVC, heif.nclx(), heif.imir(1)), expect="image",
             pixels="16,16=00ff00ff;48,16=ff0000ff;16,48=ffffffff;48,48=0000ffff")
    out.case("cropped.avif", heif.still(coded.AV1, heif.nclx(), heif.clap(32, 20), brand=b"avif"), expect="image",
             size="32x20")
    ten = heif.still(coded.HEVC_TEN, heif.pixi(10, 10, 10), heif.nclx(), brand=b"heix")
    out.case("ten-bits.heic", ten, expect="image", size="64x64", pixels=QUADRANTS)
    alpha = heif.Heif(b"avif")
    alpha.add_coded(coded.AV1, heif.nclx())
    alpha.add_coded(coded.AV1_MONO, heif.pixi(8), heif.aux_alpha(), hidden=True)
    alpha.refer(b"auxl", 2, 1)
    out.case("alpha.avif", alpha.finish(), expect="image", size="64x64", warning=SEE_THROUGH,
             pixels="16,48=ffffffff;48,16=00ff00ff")
    exif = heif.Heif()
    exif.add_coded(coded.HEVC, heif.nclx())
    exif.add(b"Exif", bytes(4) + image.exif(6), hidden=True)
    exif.refer(b"cdsc", 2, 1)
    out.case("exif.heic", exif.finish(), expect="image", size="64x64", pixels=QUADRANTS)
    pair = heif.Heif()
    pair.add_coded(coded.HEVC, heif.nclx())
    pair.add_coded(coded.HEVC, heif.nclx())
    out.case("pair.heic", pair.finish(), expect="image", size="64x64", pixels=QUADRANTS, warning="first picture")
    out.case("head.heic", heif.box(b"ftyp", b"heic" + bytes(4) + b"mif1heic"), expect="DAMAGED")
    out.case("no-primary.heic", heif.still(coded.HEVC, primary=7), expect="DAMAGED")
    vast = heif.Heif()
    vast.add(b"grid", heif.grid(256, 256, 65535, 65535), heif.ispe(65535, 65535))
    vast.refer(b"dimg", 1, *[1] * 4)
    out.case("vast-grid.heic", vast.finish(), expect="TOO_LARGE|DAMAGED")
    grown = heif.Heif()
    grown.add(b"grid", heif.grid(256, 256, 65535, 65535), heif.ispe(64, 64))
    grown.refer(b"dimg", 1, *[grown.add_coded(coded.HEVC, hidden=True)] * 4)
    out.case("grown-grid.heic", grown.finish(), expect="TOO_LARGE|DAMAGED|UNKNOWN_TYPE")
    deep = b"".join([b"\0\0\0\x08free"] * 1000)
    out.case("many-boxes.heic", heif.box(b"ftyp", b"heic" + bytes(4) + b"heic") + deep, expect="DAMAGED")
    endless = heif.box(b"ftyp", b"avif" + bytes(4) + b"avif") + b"\0\0\0\1meta" + b"\xff" * 7 + b"\xf0" + bytes(64)
    out.case("endless-box.avif", endless, expect="DAMAGED")
    out.case("avif-named.jpg", heif.still(coded.AV1, heif.nclx(), brand=b"avif"), expect="image", pixels=QUADRANTS)


def add_svg(out):
    red = svg.rect("red")
    shown = {"expect": "image", "size": "512x256", "pixels": "100,100=ff0000ff"}
    white = {"expect": "image", "size": "512x256", "pixels": "100,100=ffffffff", "warning": SEE_THROUGH}
    out.case("plain.svg", svg.svg(red), **shown)
    out.case("box.svg", svg.svg(red, size='viewBox="0 0 40 20"'), **shown)
    out.case("percent.svg", svg.svg(svg.rect("red", "width='100%' height='100%'"), size='width="100%" height="100%"'),
             expect="image", size="512x512", pixels="100,100=ff0000ff")
    out.case("wide.svg", svg.svg(svg.rect("red", "width='100%' height='100%'"), size='width="1e9" height="5e8"'),
             expect="image", size="2048x1024", pixels="100,100=ff0000ff")
    out.case("thread.svg", svg.svg(svg.rect("red", "width='100%' height='100%'"), size='width="9" height="90000"'),
             expect="image", size="1x2048", pixels="0,100=ff0000ff")
    for name, size in (("nothing", 'width="0" height="0"'), ("negative", 'width="-5" height="-5"'),
                       ("nan", 'width="nan" height="inf"')):
        out.case(f"{name}.svg", svg.svg(red, size=size), expect="image|DAMAGED|UNKNOWN_TYPE")
    out.case("half.svg", svg.svg(svg.rect("red", "width='20' height='20'")), expect="image", size="512x256",
             pixels="100,100=ff0000ff;400,100=ffffffff", warning=SEE_THROUGH)
    out.case("letters.svg", svg.svg("<rect width='40' height='20' fill='white'/><text x='0' y='20' font-size='30' "
             "font-family='DejaVu Sans'>\u2588\u2588\u2588</text>"), expect="image", pixels="100,150=000000ff")
    out.case("comment.svg", svg.svg(red, before="<?xml version='1.0'?>\n<!-- " + "drawn by hand " * 100 + "-->\n"
             '<!DOCTYPE svg [<!ENTITY one "1">]>\n'), **shown)
    out.case("prefixed.svg", f"<s:svg xmlns:s='http://www.w3.org/2000/svg' width='40' height='20'>"
             "<s:rect width='40' height='20' fill='red'/></s:svg>".encode(), **shown)
    wide = b"\xff\xfe" + ("<?xml version='1.0' encoding='UTF-16'?>" + svg.svg(red).decode()).encode("utf-16-le")
    out.case("utf16.svg", wide, **shown)
    out.case("packed.svgz", svg.packed(svg.svg(red)), **shown)
    out.case("packed.txt.gz", svg.packed(b"plain words\n" * 50), expect="UNKNOWN_TYPE|DAMAGED")
    out.case("packed-bomb.svgz", svg.packed(svg.svg(red) + b" " * (200 << 20)), expect="TOO_LARGE", peak=128)
    out.case("cut.svgz", svg.packed(svg.svg(red * 50))[:60], expect="UNKNOWN_TYPE|DAMAGED")
    out.case("about-svg.html", b"<p>An <svg> is drawn.</p>\n", expect="text", contains="An <svg>")
    out.case("inside.svg", svg.svg(svg.picture(svg.data_address(image.png_rgba([[RED]])))), **shown)
    outside = out.write("red-outside.png", image.png_rgba([[RED]]))
    for name, address in (("file", "file://" + os.path.abspath(outside)), ("relative", "red-outside.png"),
                          ("network", "http://192.0.2.1/red.png"), ("device", "file:///dev/zero")):
        out.case(f"reference-{name}.svg", svg.svg(svg.picture(address)), **white)
    style = f"<style>@import url('file://{os.path.abspath(outside)}');</style>"
    out.case("style-import.svg", svg.svg(style + red), **shown)
    out.case("entity-file.svg", svg.svg("<text y='15' font-size='9'>&leak;</text>",
             before='<!DOCTYPE svg [<!ENTITY leak SYSTEM "file:///etc/passwd">]>'), expect="image|DAMAGED")
    out.case("include.svg", svg.svg('<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="file:///etc/passwd" '
             'parse="text"/>' + red), **shown)
    out.case("script.svg", svg.svg(red + "<script>while (true) ;</script><rect width='40' height='20' fill='none' "
             "onload='while (true) ;'/>"), **shown)
    out.case("laughs.svg", svg.laughs(), expect="DAMAGED|image")
    out.case("copies.svg", svg.copies(), expect="DAMAGED|image|TOO_LARGE")
    out.case("own-copy.svg", svg.svg("<g id='a'><use xlink:href='#a'/></g>" + red), expect="image|DAMAGED")
    out.case("nested.svg", svg.nested(100000), expect="image|DAMAGED|WORKER")
    out.case("many.svg", svg.svg(svg.rect("red") * 20000), **shown, peak=96)
    out.case("broken.svg", svg.svg(red)[:-9], expect="DAMAGED")
    out.case("other-space.svg", b"<svg width='4' height='4'><rect width='4' height='4' fill='red'/></svg>",
             expect="image|DAMAGED")
    out.case("inside-bomb.svg", svg.svg(svg.picture(svg.data_address(
        image.png(30000, 30000, [bytes(3750)] * 300, depth=1, color=0)))), expect="image|DAMAGED|WORKER|TOO_LARGE",
             peak=200)
    out.case("blur.svg", svg.svg("<filter id='f' x='-9' y='-9' width='99' height='99'><feGaussianBlur "
             "stdDeviation='1e5'/></filter><g filter='url(#f)'>" + red + "</g>"), expect="image|DAMAGED")


def add_seeds(out):
    """One or two sound files of each format: what fuzz replay starts from."""
    rows = [[(x * 9 & 255, y * 9 & 255, 9, 255 - x) for x in range(24)] for y in range(20)]
    blocks = [[((x * 37 + y * 11) & 255, 128, 128) for x in range(6)] for y in range(4)]
    seeds = {"seed.png": image.png_rgba(rows), "seed-palette.png": image.png(
                 8, 2, [b"\x1b", b"\xe4"], depth=1, color=3, extra=image.chunk(b"PLTE", bytes(6))),
             "seed.jpg": image.jpeg(blocks, orientation=6),
             "seed-progressive.jpg": image.jpeg(blocks, progressive=True),
             "seed.gif": image.gif([[0, 1], [2, 3]] * 4, n_frame=2, clear=1), "seed.bmp": image.bmp(rows),
             "seed-runs.bmp": image.bmp_raw(4, 1, 8, b"\4\1\0\1", palette=bytes(8), packing=1),
             "seed.tiff": tiff.single(24, 20, [zlib.compress(tiff.rgb(rows))], compression=tiff.DEFLATE),
             "seed-tiles.tiff": tiff.tiled(rows), "seed.webp": coded.WEBP_LOSSY,
             "seed-moving.webp": image.webp_animation(8, 8, [GREEN, RED], frame=(2, 4, 4, 4)),
             "seed.heic": heif.still(coded.HEVC, heif.nclx(), heif.irot(1)),
             "seed.avif": heif.still(coded.AV1, heif.nclx(), brand=b"avif"),
             "seed.svg": svg.svg("<g id='a'>" + svg.rect("red") + "</g><use href='#a' x='3'/><text y='9'>ha</text>"
                                 + svg.picture(svg.data_address(image.png_rgba([[RED]])))),
             "seed.svgz": svg.packed(svg.svg(svg.rect("blue")))}
    for name, data in seeds.items():
        out.case(name, data, expect="image")


GROUPS = {"png": add_png, "profiles": add_profiles, "jpeg": add_jpeg, "gif-bmp": add_gif_bmp, "tiff": add_tiff,
          "webp": add_webp, "heif": add_heif, "svg": add_svg}
