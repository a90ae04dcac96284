"""Small PDF files, sound and hostile, written object by object: used by make-hostile.py."""
# SPDX-License-Identifier: GPL-3.0-or-later
import hashlib
import struct
import zlib

PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")
FILE_ID = b"keepsake-tests-1"


def rc4(key, data):
    state, j, out = list(range(256)), 0, bytearray()
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) & 255
        state[i], state[j] = state[j], state[i]
    i = j = 0
    for byte in data:
        i = (i + 1) & 255
        j = (j + state[i]) & 255
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) & 255])
    return bytes(out)


def double(a):
    return (a << 1) ^ (0x11B if a & 0x80 else 0)


def make_sbox():
    box, p, q = [0] * 256, 1, 1
    while True:
        p ^= double(p)  # times 3
        for shift in (1, 2, 4):
            q ^= (q << shift) & 0xFF
        if q & 0x80:
            q ^= 9
        x = q
        for turn in (1, 2, 3, 4):
            x ^= ((q << turn) | (q >> (8 - turn))) & 0xFF
        box[p] = x ^ 0x63
        if p == 1:
            break
    box[0] = 0x63
    return box


SBOX = make_sbox()


def expand_key(key):
    n_word, n_round = len(key) // 4, len(key) // 4 + 6
    words = [list(key[4 * i:4 * i + 4]) for i in range(n_word)]
    factor = 1
    for i in range(n_word, 4 * (n_round + 1)):
        word = list(words[-1])
        if i % n_word == 0:
            word = [SBOX[b] for b in word[1:] + word[:1]]
            word[0] ^= factor
            factor = double(factor)
        elif n_word > 6 and i % n_word == 4:
            word = [SBOX[b] for b in word]
        words.append([a ^ b for a, b in zip(words[-n_word], word)])
    numbers = [int.from_bytes(bytes(word), "big") for word in words]
    return [numbers[4 * r:4 * r + 4] for r in range(n_round + 1)]


def make_tables():
    """S-box and column mixing in one step, for a byte in each of the four rows."""
    first = [double(s) << 24 | s << 16 | s << 8 | (double(s) ^ s) for s in SBOX]
    return [[(t >> turn | t << (32 - turn)) & 0xFFFFFFFF for t in first] for turn in (0, 8, 16, 24)]


T0, T1, T2, T3 = make_tables()


def encrypt_words(keys, a, b, c, d):
    k = keys[0]
    a, b, c, d = a ^ k[0], b ^ k[1], c ^ k[2], d ^ k[3]
    for k in keys[1:-1]:
        a, b, c, d = (
            T0[a >> 24] ^ T1[b >> 16 & 255] ^ T2[c >> 8 & 255] ^ T3[d & 255] ^ k[0],
            T0[b >> 24] ^ T1[c >> 16 & 255] ^ T2[d >> 8 & 255] ^ T3[a & 255] ^ k[1],
            T0[c >> 24] ^ T1[d >> 16 & 255] ^ T2[a >> 8 & 255] ^ T3[b & 255] ^ k[2],
            T0[d >> 24] ^ T1[a >> 16 & 255] ^ T2[b >> 8 & 255] ^ T3[c & 255] ^ k[3])
    k, s = keys[-1], SBOX
    return [(s[w >> 24] << 24 | s[x >> 16 & 255] << 16 | s[y >> 8 & 255] << 8 | s[z & 255]) ^ key
            for w, x, y, z, key in ((a, b, c, d, k[0]), (b, c, d, a, k[1]), (c, d, a, b, k[2]), (d, a, b, c, k[3]))]


def aes_cbc(key, iv, data, pad=True):
    if pad:
        n = 16 - len(data) % 16
        data += bytes([n]) * n
    keys, out = expand_key(key), []
    last = struct.unpack(">4I", iv)
    words = struct.unpack(f">{len(data) // 4}I", data)
    for at in range(0, len(words), 4):
        last = encrypt_words(keys, *(a ^ b for a, b in zip(words[at:at + 4], last)))
        out += last
    return struct.pack(f">{len(out)}I", *out)


def hash_r6(password, salt, extra=b""):
    """Algorithm 2.B of ISO 32000-2."""
    k, number = hashlib.sha256(password + salt + extra).digest(), 0
    while True:
        e = aes_cbc(k[:16], k[16:32], (password + k + extra) * 64, pad=False)
        k = (hashlib.sha256, hashlib.sha384, hashlib.sha512)[sum(e[:16]) % 3](e).digest()
        number += 1
        if number >= 64 and e[-1] <= number - 32:
            return k[:32]


class Encryption:
    """The standard security handler: method rc4 (128 bit), aes128 or aes256."""

    def __init__(self, method, user, owner):
        self.method = method
        if method == "aes256":
            self.make_aes256(user, owner)
        else:
            self.make_old(user, owner)

    def make_old(self, user, owner):
        revision = 3 if self.method == "rc4" else 4
        key = hashlib.md5((owner + PADDING)[:32]).digest()
        for _ in range(50):
            key = hashlib.md5(key).digest()
        o = (user + PADDING)[:32]
        for i in range(20):
            o = rc4(bytes(b ^ i for b in key), o)
        permissions = -4
        key = hashlib.md5((user + PADDING)[:32] + o + permissions.to_bytes(4, "little", signed=True)
                          + FILE_ID).digest()
        for _ in range(50):
            key = hashlib.md5(key).digest()
        self.key = key
        u = hashlib.md5(PADDING + FILE_ID).digest()
        for i in range(20):
            u = rc4(bytes(b ^ i for b in key), u)
        u += bytes(16)
        filters = ("/V 2 /Length 128" if revision == 3 else
                   "/V 4 /Length 128 /CF <</StdCF <</CFM /AESV2 /AuthEvent /DocOpen /Length 16>>>> "
                   "/StmF /StdCF /StrF /StdCF")
        self.dictionary = (f"<</Filter /Standard /R {revision} {filters} /P {permissions} "
                           f"/O <{o.hex()}> /U <{u.hex()}>>>")

    def make_aes256(self, user, owner):
        self.key, iv = hashlib.sha256(b"file key").digest(), bytes(16)
        u = hash_r6(user, b"uservali") + b"uservali" + b"userkeys"
        user_box = aes_cbc(hash_r6(user, b"userkeys"), iv, self.key, pad=False)
        o = hash_r6(owner, b"ownevali", u) + b"ownevali" + b"ownekeys"
        owner_box = aes_cbc(hash_r6(owner, b"ownekeys", u), iv, self.key, pad=False)
        perms = aes_cbc(self.key, iv, (-4).to_bytes(8, "little", signed=True) + b"Tadbabcd", pad=False)
        self.dictionary = (
            "<</Filter /Standard /V 5 /R 6 /Length 256 /P -4 /StmF /StdCF /StrF /StdCF "
            "/CF <</StdCF <</CFM /AESV3 /AuthEvent /DocOpen /Length 32>>>> "
            f"/U <{u.hex()}> /U\x45 <{user_box.hex()}> /O <{o.hex()}> /OE <{owner_box.hex()}> /Perms <{perms.hex()}>>>")

    def encrypt(self, number, data):
        if self.method == "aes256":
            return bytes(16) + aes_cbc(self.key, bytes(16), data)
        salt = b"sAlT" if self.method == "aes128" else b""
        key = hashlib.md5(self.key + number.to_bytes(3, "little") + b"\0\0" + salt).digest()
        if self.method == "aes128":
            return bytes(16) + aes_cbc(key, bytes(16), data)
        return rc4(key, data)


class Pdf:
    """Numbered objects; number 1 is the catalogue, 2 the root of the pages, 3 a font."""

    def __init__(self, encryption=None):
        self.objects, self.encryption = {}, encryption
        self.pages = []
        self.catalogue = ""
        self.set(3, "<</Type /Font /Subtype /Type1 /BaseFont /Helvetica>>")
        self.next = 4

    def set(self, number, body):
        self.objects[number] = body.encode("latin-1") if isinstance(body, str) else body

    def add(self, body):
        self.set(self.next, body)
        self.next += 1
        return self.next - 1

    def add_stream(self, data, extra="", compress=False):
        number = self.next
        if compress:
            data, extra = zlib.compress(data, 9), extra + " /Filter /FlateDecode"
        if self.encryption:
            data = self.encryption.encrypt(number, data)
        return self.add(f"<</Length {len(data)} {extra}>>\nstream\n".encode() + data + b"\nendstream")

    def add_page(self, content, extra="", box="[0 0 612 792]", resources="/Font <</F1 3 0 R>>"):
        if isinstance(content, str):
            content = content.encode("latin-1")
        stream = self.add_stream(content)
        page = self.add(f"<</Type /Page /Parent 2 0 R /MediaBox {box} /Contents {stream} 0 R "
                        f"/Resources <<{resources}>> {extra}>>")
        self.pages.append(page)
        return page

    def add_text_page(self, text, **kwargs):
        return self.add_page(f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET", **kwargs)

    def finish(self, prev=None, pages=None):
        kids = " ".join(f"{n} 0 R" for n in self.pages)
        self.set(1, f"<</Type /Catalog /Pages 2 0 R {self.catalogue}>>")
        if 2 not in self.objects:
            self.set(2, pages or f"<</Type /Pages /Kids [{kids}] /Count {len(self.pages)}>>")
        out, offsets = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"), {}
        for number in sorted(self.objects):
            offsets[number] = len(out)
            out += f"{number} 0 obj\n".encode() + self.objects[number] + b"\nendobj\n"
        start, n = len(out), max(self.objects) + 1
        out += f"xref\n0 {n}\n0000000000 65535 f \n".encode()
        for number in range(1, n):
            out += (b"%010d 00000 n \n" % offsets[number] if number in offsets else b"0000000000 65535 f \n")
        trailer = f"/Size {n} /Root 1 0 R /ID [<{FILE_ID.hex()}> <{FILE_ID.hex()}>]"
        if prev == "itself":
            trailer += f" /Prev {start}"
        if self.encryption:
            trailer += f" /Encrypt {self.encryption.dictionary}"
        out += f"trailer\n<<{trailer}>>\nstartxref\n{start}\n%%EOF\n".encode()
        return bytes(out)


def simple(text="Hello page", **kwargs):
    pdf = Pdf()
    pdf.add_text_page(text, **kwargs)
    return pdf.finish()


def encrypted(method, user, owner=b"owner"):
    pdf = Pdf(Encryption(method, user, owner))
    pdf.add_text_page("Secret words")
    return pdf.finish()


def many_pages(n):
    pdf = Pdf()
    for i in range(n):
        pdf.add_text_page(f"Leaf {i + 1}")
    return pdf.finish()


def rotated(degrees):
    return simple("Turned page", extra=f"/Rotate {degrees}", box="[0 400 600 800]")


def unicode_text(text, ordering="Identity"):
    """Glyph i is text[i]; only the ToUnicode table says which letter that is."""
    pdf = Pdf()
    pairs = "\n".join(f"<{i + 1:04x}> <{c.encode('utf-16-be').hex()}>" for i, c in enumerate(text))
    table = pdf.add_stream(
        ("/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /T def\n"
         "1 begincodespacerange <0000> <ffff> endcodespacerange\n"
         f"{len(text)} beginbfchar\n{pairs}\nendbfchar endcmap end end").encode())
    base = pdf.add("<</Type /Font /Subtype /CIDFontType2 /BaseFont /Missing /DW 1000 "
                   f"/CIDSystemInfo <</Registry (Adobe) /Ordering ({ordering}) /Supplement 0>> "
                   "/FontDescriptor <</Type /FontDescriptor /FontName /Missing /Flags 4 /FontBBox [0 0 1000 1000] "
                   "/ItalicAngle 0 /Ascent 800 /Descent -200 /StemV 80 /CapHeight 700>>>>")
    font = pdf.add("<</Type /Font /Subtype /Type0 /BaseFont /Missing /Encoding /Identity-H "
                   f"/DescendantFonts [{base} 0 R] /ToUnicode {table} 0 R>>")
    codes = "".join(f"{i + 1:04x}" for i in range(len(text)))
    pdf.add_page(f"BT /F2 24 Tf 72 700 Td <{codes}> Tj ET", resources=f"/Font <</F2 {font} 0 R>>")
    return pdf.finish()


def named_encoding(encoding, ordering, data):
    """East Asian text whose tables come with poppler-data."""
    pdf = Pdf()
    base = pdf.add("<</Type /Font /Subtype /CIDFontType0 /BaseFont /Missing /DW 1000 "
                   f"/CIDSystemInfo <</Registry (Adobe) /Ordering ({ordering}) /Supplement 2>> "
                   "/FontDescriptor <</Type /FontDescriptor /FontName /Missing /Flags 4 /FontBBox [0 0 1000 1000] "
                   "/ItalicAngle 0 /Ascent 800 /Descent -200 /StemV 80 /CapHeight 700>>>>")
    font = pdf.add(f"<</Type /Font /Subtype /Type0 /BaseFont /Missing /Encoding /{encoding} "
                   f"/DescendantFonts [{base} 0 R]>>")
    pdf.add_page(f"BT /F2 24 Tf 72 700 Td <{data.hex()}> Tj ET", resources=f"/Font <</F2 {font} 0 R>>")
    return pdf.finish()


def deep_tree(n):
    """Each node of the page tree has one child, n levels down to the only page."""
    pdf = Pdf()
    page = pdf.add_text_page("Deep leaf")
    first = pdf.next
    for i in range(n):
        kid = page if i == n - 1 else first + i + 1
        pdf.set(first + i, f"<</Type /Pages /Parent {first + i - 1 if i else 2} 0 R /Kids [{kid} 0 R] /Count 1>>")
    return pdf.finish(pages=f"<</Type /Pages /Kids [{first} 0 R] /Count 1>>")


def tree_loop():
    pdf = Pdf()
    pdf.add_text_page("In a loop")
    return pdf.finish(pages="<</Type /Pages /Kids [2 0 R 2 0 R] /Count 2>>")


def count_lie(n):
    pdf = Pdf()
    page = pdf.add_text_page("The only one")
    return pdf.finish(pages=f"<</Type /Pages /Kids [{page} 0 R] /Count {n}>>")


def flate_bomb(n_mib):
    """A page of n_mib MiB of blanks that take a few kilobytes, packed twice."""
    packer, packed = zlib.compressobj(9), bytearray()
    for _ in range(n_mib):
        packed += packer.compress(b" " * (1 << 20))
    packed = zlib.compress(bytes(packed + packer.flush()), 9)
    pdf = Pdf()
    stream = pdf.add(f"<</Length {len(packed)} /Filter [/FlateDecode /FlateDecode]>>\nstream\n".encode()
                     + packed + b"\nendstream")
    page = pdf.add(f"<</Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {stream} 0 R>>")
    pdf.pages.append(page)
    return pdf.finish()


def image_bomb():
    """A picture that claims 3.6 thousand million pixels in a stream of a few bytes."""
    pdf = Pdf()
    image = pdf.add_stream(b"\0" * 64, "/Type /XObject /Subtype /Image /Width 60000 /Height 60000 "
                           "/BitsPerComponent 8 /ColorSpace /DeviceRGB", compress=True)
    pdf.add_page("BT /F1 24 Tf 72 700 Td (Beside the bomb) Tj ET q 600 0 0 600 0 0 cm /I Do Q",
                 resources=f"/Font <</F1 3 0 R>> /XObject <</I {image} 0 R>>")
    return pdf.finish()


def illustrated(side):
    """Page 1 has text, page 2 text and a grey picture of side x side points."""
    pdf = Pdf()
    pdf.add_text_page("Words alone")
    image = pdf.add_stream(b"\x80" * 64, "/Type /XObject /Subtype /Image /Width 8 /Height 8 "
                           "/BitsPerComponent 8 /ColorSpace /DeviceGray")
    pdf.add_page(f"BT /F1 24 Tf 72 700 Td (Words beside it) Tj ET q {side} 0 0 {side} 72 100 cm /I Do Q",
                 resources=f"/Font <</F1 3 0 R>> /XObject <</I {image} 0 R>>")
    return pdf.finish()


def object_stream_loop():
    """An object stream that says it lies inside itself."""
    body = b"%PDF-1.5\n"
    objects = b"1 0 2 30 <</Type /Catalog /Pages 2 0 R>>    <</Type /Pages /Kids [] /Count 0>>"
    stream_at = len(body)
    body += b"5 0 obj\n<</Type /ObjStm /N 2 /First 9 /Extends 5 0 R /Length %d>>\nstream\n" % len(objects)
    body += objects + b"\nendstream\nendobj\n"
    rows = b"".join(kind.to_bytes(1, "big") + a.to_bytes(4, "big") + b.to_bytes(2, "big") for kind, a, b in (
        (0, 0, 65535), (2, 5, 0), (2, 5, 1), (0, 0, 0), (0, 0, 0), (2, 5, 0), (1, len(body), 0)))
    xref_at = len(body)
    body += (b"6 0 obj\n<</Type /XRef /Size 7 /W [1 4 2] /Root 1 0 R /Length %d>>\nstream\n" % len(rows)
             + rows + b"\nendstream\nendobj\nstartxref\n%d\n%%%%EOF\n" % xref_at)
    assert stream_at == 9
    return body


def recursive_form():
    pdf = Pdf()
    form = pdf.next
    pdf.add_stream(b"/X Do /X Do /X Do", f"/Type /XObject /Subtype /Form /BBox [0 0 100 100] "
                   f"/Resources <</XObject <</X {form} 0 R>>>>")
    pdf.add_page("BT /F1 24 Tf 72 700 Td (Around the circle) Tj ET /X Do",
                 resources=f"/Font <</F1 3 0 R>> /XObject <</X {form} 0 R>>")
    return pdf.finish()


def recursive_glyph():
    """A Type 3 font whose only letter draws itself."""
    pdf = Pdf()
    font = pdf.next + 1
    glyph = pdf.add_stream(b"1000 0 d0 BT /F2 1 Tf (a) Tj ET")
    pdf.add(f"<</Type /Font /Subtype /Type3 /FontBBox [0 0 1000 1000] /FontMatrix [0.001 0 0 0.001 0 0] "
            f"/FirstChar 97 /LastChar 97 /Widths [1000] /Encoding <</Type /Encoding /Differences [97 /a]>> "
            f"/CharProcs <</a {glyph} 0 R>> /Resources <</Font <</F2 {font} 0 R>>>>>>")
    pdf.add_page("BT /F1 24 Tf 72 700 Td (Letter of itself) Tj /F2 24 Tf (a) Tj ET",
                 resources=f"/Font <</F1 3 0 R /F2 {font} 0 R>>")
    return pdf.finish()


def square():
    pdf = Pdf()
    pdf.add_page("10 10 500 500 re f")
    return pdf.finish()


def scanned(first, second):
    """Page 1 has text; the letters of page 2 are shapes only: its table says that all of them are blanks."""
    pdf = Pdf()
    pdf.add_text_page(first)
    blanks = "\n".join(f"<{i:02x}> <0020>" for i in range(0x20, 0x7f))
    table = pdf.add_stream(
        ("/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /T def\n"
         "1 begincodespacerange <00> <ff> endcodespacerange\n"
         f"95 beginbfchar\n{blanks}\nendbfchar endcmap end end").encode())
    font = pdf.add(f"<</Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode {table} 0 R>>")
    pdf.add_page(f"BT /F2 24 Tf 72 700 Td ({second}) Tj ET", resources=f"/Font <</F2 {font} 0 R>>")
    return pdf.finish()


def with_actions():
    """Everything that a viewer might do by itself; here nothing of it may happen."""
    pdf = Pdf()
    pdf.catalogue = ("/OpenAction <</S /JavaScript /JS (app.alert\\('run'\\); while\\(1\\);)>> "
                     "/Names <</JavaScript <</Names [(a) <</S /JavaScript /JS (while\\(1\\);)>>]>>>> "
                     "/AA <</WC <</S /Launch /F (/bin/sh)>>>>")
    pdf.add_text_page("Quiet page", extra="/AA <</O <</S /Launch /F (/bin/sh)>>>> /Annots ["
                      "<</Type /Annot /Subtype /Link /Rect [0 0 600 700] /A <</S /URI /URI (http://127.0.0.1:9/x)>>>> "
                      "<</Type /Annot /Subtype /Link /Rect [0 0 9 9] /A <</S /SubmitForm /F (http://127.0.0.1:9/)>>>>]")
    return pdf.finish()


def with_embedded_file():
    pdf = Pdf()
    inner = pdf.add_stream(b"INNER FILE CONTENT", "/Type /EmbeddedFile")
    pdf.catalogue = (f"/Names <</EmbeddedFiles <</Names [(a.exe) <</Type /Filespec /F (../../a.exe) "
                     f"/EF <</F {inner} 0 R>>>>]>>>>")
    pdf.add_text_page("Outer page")
    return pdf.finish()
