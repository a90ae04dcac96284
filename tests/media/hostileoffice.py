"""Small documents with pictures, sound and hostile, made part by part: used by make-hostile.py."""
# SPDX-License-Identifier: GPL-3.0-or-later
import base64
import io
import zipfile

import hostileimage as image
import hostilepdf as pdf
from hostileimage import BLUE, GREEN, RED

RED_DOT, BLUE_DOT, GREEN_DOT = (image.png_rgba([[colour] * 4] * 3) for colour in (RED, BLUE, GREEN))
XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
P = "http://schemas.openxmlformats.org/presentationml/2006/main"
LAUGHS = ('<!DOCTYPE x [<!ENTITY a "ha">' + "".join(f'<!ENTITY {c} "{f"&{p};" * 10}">' for p, c in zip("abcdefghi",
        "bcdefghij"))
          + '<!ENTITY file SYSTEM "file:///etc/passwd">]>')


def archive(parts, stored=("mimetype",)):
    """parts: name -> text or bytes, in this order."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in parts.items():
            info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            file.writestr(info, data)
    return out.getvalue()


def links(*targets):
    """(id, end of the type, target[, mode])"""
    return XML + '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">' + "".join(
        f'<Relationship Id="{i[0]}" Type="{OFFICE}/{i[1]}" Target="{i[2]}"'
        + (f' TargetMode="{i[3]}"' if len(i) > 3 else "") + "/>" for i in targets) + "</Relationships>"


# --- DOCX ---

def paragraph(text, properties=""):
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t xml:space=\"preserve\">{text}</w:t></w:r></w:p>"


def drawing(link, alt=""):
    return (f'<w:p><w:r><w:drawing><wp:inline><wp:docPr id="1" name="Picture 1" descr="{alt}"/><a:graphic>'
            f'<a:graphicData>'
            f'<pic:pic><pic:nvPicPr><pic:cNvPr id="0" name="x.png"/></pic:nvPicPr><pic:blipFill><a:blip '
                f'r:embed="{link}"/>'
            "</pic:blipFill></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>")


def word(body):
    return (XML + f'<w:document xmlns:w="{W}" xmlns:r="{OFFICE}" xmlns:a="{A}" xmlns:wp="urn:wp" xmlns:pic="urn:pic" '
            f'xmlns:mc="urn:mc" xmlns:v="urn:v"><w:body>{body}</w:body></w:document>')


def docx(body, extra=None, pictures=(("rId7", "media/image1.png", RED_DOT),), prefix=""):
    parts = {"[Content_Types].xml": XML + "<Types/>",
             "_rels/.rels": links(("rId1", "officeDocument", "word/document.xml")),
             "word/_rels/document.xml.rels": links(
                 ("rId1", "styles", "styles.xml"), ("rId2", "footnotes", "footnotes.xml"),
                 ("rId9", "image", "http://127.0.0.1:9/far.png", "External"),
                 *((link, "image", target) for link, target, _ in pictures)),
             "word/styles.xml": XML + f'<w:styles xmlns:w="{W}"><w:style w:styleId="berschrift1"><w:name '
                     f'w:val="heading 1"/>'
             '</w:style><w:style w:styleId="Kopf"><w:name w:val="Title"/></w:style></w:styles>',
             "word/document.xml": prefix + word(body)}
    parts.update({"word/" + target: data for _, target, data in pictures})
    parts.update(extra or {})
    return archive(parts)


def rich_docx():
    cell = "<w:tc>{}</w:tc>".format
    row = "<w:tr>{}</w:tr>".format
    body = (paragraph("Großer Kopf", '<w:pStyle w:val="berschrift1"/>')
            + paragraph("First &amp; only", "<w:tabs><w:tab w:val=\"left\"/></w:tabs>")
            + paragraph("point", '<w:numPr><w:ilvl w:val="1"/><w:numId w:val="3"/></w:numPr>')
            + drawing("rId7", "A red\n dot")
            + "<w:p><w:r><w:t>kept</w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
            "<w:r><w:footnoteReference w:id=\"2\"/></w:r></w:p>"
            + "<w:tbl>" + row(cell(paragraph("a")) + cell(paragraph("b")))
            + row(cell(paragraph("c")) + cell(drawing("rId8"))) + "</w:tbl>"
            + paragraph("[picture 1]")
            + "<w:p><mc:AlternateContent><mc:Choice><w:r><w:t>new</w:t></w:r></mc:Choice><mc:Fallback><w:r><w:t>old"
                "</w:t></w:r>"
            "</mc:Fallback></mc:AlternateContent></w:p>" + drawing("rId9", "Far away") + drawing("rId7"))
    notes = (XML + f'<w:footnotes xmlns:w="{W}"><w:footnote w:type="separator" w:id="0">{paragraph("line")}'
            f'</w:footnote>'
             f'<w:footnote w:id="2">{paragraph("The note")}</w:footnote></w:footnotes>')
    return docx(body, {"word/footnotes.xml": notes},
                (("rId7", "media/image1.png", RED_DOT), ("rId8", "media/image2.png", BLUE_DOT)))


# --- PPTX ---

def shape(kind, *texts):
    lines = "".join(f"<a:p><a:pPr><a:tabLst><a:tab/></a:tabLst></a:pPr><a:r><a:t>{t}</a:t></a:r></a:p>" for t in texts)
    return (f'<p:sp><p:nvSpPr><p:cNvPr id="2" name="x"/><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>'
            f'<p:txBody>{lines}</p:txBody></p:sp>')


def slide(root, *shapes):
    return (XML + f'<p:{root} xmlns:p="{P}" xmlns:a="{A}" xmlns:r="{OFFICE}"><p:cSld><p:spTree>{"".join(shapes)}'
            f'</p:spTree></p:cSld></p:{root}>')


def pptx():
    """The order of slides is that of the presentation, not that of the names."""
    photo = ('<p:pic><p:nvPicPr><p:cNvPr id="4" name="p" descr="A blue dot"/></p:nvPicPr><p:blipFill><a:blip '
            'r:embed="rId2"/>'
             "</p:blipFill></p:pic>")
    return archive({
        "_rels/.rels": links(("rId1", "officeDocument", "ppt/presentation.xml")),
        "ppt/presentation.xml": XML + f'<p:presentation xmlns:p="{P}" xmlns:r="{OFFICE}"><p:sldIdLst>'
        '<p:sldId id="256" r:id="rId5"/><p:sldId id="257" r:id="rId4"/></p:sldIdLst></p:presentation>',
        "ppt/_rels/presentation.xml.rels": links(("rId4", "slide", "slides/slide1.xml"), ("rId5", "slide",
                "/ppt/slides/slide2.xml")),
        "ppt/slides/slide1.xml": slide("sld", shape("title", "Second"), shape("body", "the end")),
        "ppt/slides/slide2.xml": slide("sld", shape("ctrTitle", "First"), shape("body", "one", "two"), photo),
        "ppt/slides/_rels/slide2.xml.rels": links(("rId2", "image", "../media/dot.png"), ("rId3", "notesSlide",
                "../notesSlides/n.xml")),
        "ppt/notesSlides/n.xml": slide("notes", shape("sldNum", "7"), shape("body", "Say hello")),
        "ppt/media/dot.png": BLUE_DOT})


# --- ODF ---

ODF = ('xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
       'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
       'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
           'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" '
       'xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" '
           'xmlns:xlink="http://www.w3.org/1999/xlink"')


def odf(kind, body, extra=None, prefix=""):
    return archive({"mimetype": "application/vnd.oasis.opendocument." + kind,
                    "content.xml": XML + prefix + f"<office:document-content {ODF}><office:body>{body}"
                            f"</office:body></office:document-content>",
                    "Pictures/100.png": GREEN_DOT, **(extra or {})})


def odt():
    frame = ('<draw:frame><draw:image xlink:href="Pictures/100.png"/><svg:title>Dot</svg:title><svg:desc>green'
            '</svg:desc></draw:frame>')
    return odf("text", "<office:text><text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
               '<text:h text:outline-level="2">Head\n  line</text:h><text:p>a<text:s text:c="3"/>b <text:span>c'
                   '</text:span> '
               '<text:span>d</text:span><text:note><text:note-citation>1</text:note-citation><text:note-body>'
                   '<text:p>note</text:p>'
               "</text:note-body></text:note><office:annotation><text:p>comment</text:p></office:annotation></text:p>"
               "<text:list><text:list-item><text:p>item</text:p></text:list-item></text:list>"
               f"<text:p>{frame}</text:p><table:table><table:table-row><table:table-cell><text:p>x</text:p>"
                   f"</table:table-cell>"
               "<table:table-cell><text:p>y</text:p><text:p>z</text:p></table:table-cell></table:table-row>"
                   "</table:table></office:text>")


def odp():
    return odf("presentation", "<office:presentation><draw:page><draw:frame><draw:text-box><text:p>Hello</text:p>"
            "</draw:text-box>"
               '</draw:frame><draw:frame><draw:image xlink:href="Pictures/100.png"/></draw:frame></draw:page>'
               "<draw:page><draw:frame><draw:text-box><text:p>Again</text:p></draw:text-box></draw:frame>"
                   "</draw:page></office:presentation>")


# --- EPUB, HTML ---

def epub(chapters=None, extra=None):
    chapters = chapters or {
        "b.xhtml": "<html><head><title>no</title></head><body><h1>Late</h1><p>second &amp; last</p>"
                   '<p><img src="../img/a%20dot.png" alt="dot"/></p></body></html>',
        "a.xhtml": '<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><body>'
                '<p>early&#160;words</p>'
                   '<svg><image xlink:href="../img/a%20dot.png"/></svg></body></html>'}
    items = "".join(f'<item id="{name}" href="text/{name}" media-type="application/xhtml+xml"/>' for name in chapters)
    order = "".join(f'<itemref idref="{name}"/>' for name in sorted(chapters))
    return archive({"mimetype": "application/epub+zip",
                    "META-INF/container.xml": XML + '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/>'
                            '</rootfiles></container>',
                    "OEBPS/book.opf": XML + '<package xmlns:dc="urn:dc"><metadata><dc:title>A Book</dc:title>'
                            '<dc:creator>N. N.</dc:creator>'
                    f"</metadata><manifest>{items}</manifest><spine>{order}</spine></package>",
                    **{"OEBPS/text/" + name: text for name, text in chapters.items()},
                    "OEBPS/img/a dot.png": RED_DOT, **(extra or {})})


def data_url(picture):
    return "data:image/png;base64," + base64.b64encode(picture).decode()


def html():
    return ("<!-- made by hand --><!DOCTYPE html>\n<html><head><title>Page &amp; title</title><style>p { color: "
            "red }</style>"
            f"<script>var a = '<p>script</p>';</script></head><body><h2>Head</h2><p>one\n  two<br>three<ul>"
                f"<li>first<li>second</ul>"
            f'<img alt="red dot" src="{data_url(RED_DOT)}"><img src="http://127.0.0.1:9/x.png" alt="far"><img '
                f'src="track.gif">'
            f"<table><tr><td>a<td>b<tr><td>c<td><img src='{data_url(BLUE_DOT)}'></table><pre>  kept\n   so"
                f"</pre>&copy;</body></html>").encode()


def local_header_lies(name, n_entry):
    """A directory that promises many more entries than there are."""
    data = bytearray(archive({name: "x"}))
    end = data.rindex(b"PK\5\6")
    data[end + 8:end + 12] = n_entry.to_bytes(2, "little") * 2
    return bytes(data)


def bomb(n_mib):
    """A document part of n_mib MiB of the same letter."""
    return docx("<w:p><w:r><w:t>" + "".join("a" * (1 << 20) + "</w:t><w:t>" for _ in range(n_mib)) + "</w:t></w:r>"
            "</w:p>")


def encrypted_zip():
    """The flag that says so is enough: nothing can be read without the password."""
    data = bytearray(docx(paragraph("secret")))
    for mark, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        place = data.find(mark)
        while place >= 0:
            data[place + at] |= 1
            place = data.find(mark, place + 4)
    return bytes(data)


def deep_xml(n):
    return docx("<w:x>" * n + "deep" + "</w:x>" * n)


def add_offices(out):
    out.case("rich.docx", rich_docx(), expect="document", pictures=2, contains="# Großer Kopf\\nFirst & only\\n  - "
            "point\\n"
             "[picture 1: A red dot]\\nkept[^2]\\na | b\\nc |\\n[picture 2]\\n [picture 1]\\nnew\\n[picture: Far "
                 "away]\\n[picture 1]\\n"
             "[^2] The note\\n")
    out.case("rich.docx", expect="document", lacks="gone")
    out.case("rich.docx", expect="document", lacks="old")
    out.case("slides.pptx", pptx(), expect="document", pictures=1, contains="[slide 1]\\n\\n# First\\none\\ntwo\\n"
             "[picture 1: A blue dot]\\nNotes:\\nSay hello\\n\\n[slide 2]\\n\\n# Second\\nthe end\\n")
    out.case("slides.pptx", expect="document", lacks="7")
    out.case("letter.odt", odt(), expect="document", pictures=1, contains="## Head line\\na   b c d (note)\\n- item\\n"
             "[picture 1: Dot green]\\nx | y z\\n")
    out.case("letter.odt", expect="document", lacks="deleted")
    out.case("letter.odt", expect="document", lacks="comment")
    out.case("slides.odp", odp(), expect="document", pictures=1, contains="[slide 1]\\nHello\\n[picture "
            "1]\\n\\n[slide 2]\\nAgain\\n")
    out.case("book.epub", epub(), expect="document", pictures=1, contains="A Book, N. "
            "N.\\n\\nearly\u00a0words\\n\\n[picture 1]\\n\\n"
             "# Late\\n\\nsecond & last\\n\\n[picture 1: dot]\\n")
    out.case("page.html", html(), expect="document", pictures=2, contains="Page & title\\n\\n## Head\\n\\none "
            "two\\nthree\\n\\n- first\\n"
             "- second\\n[picture 1: red dot]\\n[picture: far]\\na | b\\nc |\\n[picture 2]\\n\\n  kept\\n   "
                 "so\\n\\n©\\n")
    out.case("page.html", expect="document", lacks="script")
    out.case("latin1.html", '<html><head><meta charset="iso-8859-1"></head><body>Größe'.encode("latin-1"),
            expect="document",
             contains="Größe\\n")
    out.case("korean.html", '<html><head><meta charset="euc-kr"></head><body>한국어'.encode("euc-kr"), expect="document",
             contains="한국어\\n")
    add_broken_offices(out)


def unpacked(data):
    """The same archive with nothing packed, so that a mutation reaches the parts."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    return archive(parts, stored=parts)


def add_seeds(out):
    for name, data in (("seed.docx", rich_docx()), ("seed.pptx", pptx()), ("seed.odt", odt()), ("seed.epub", epub())):
        out.case(name, unpacked(data), expect="document")
    out.case("packed.docx", rich_docx(), expect="document")
    out.case("seed.html", html(), expect="document")


def add_scans(out):
    out.case("scanned.pdf", pdf.scanned("Typed words", "SCANNED LINES"), expect="pdf", pages=2, blank=1,
            contains="Typed words")
    out.case("marked.pdf", pdf.simple("[page 2]"), expect="pdf", pages=1, blank=0, contains="[page 1]\\n [page 2]\\n")
    out.case("printed.pdf", pdf.simple("Hello page"), expect="pdf", blank=0)
    out.case("shape.pdf", pdf.square(), expect="pdf", pages=1, blank=1)
    out.case("red.png", RED_DOT, expect="image", size="4x3")
    out.case("letter.odt", odt(), expect="document")


def add_broken_offices(out):
    whole = rich_docx()
    out.case("noise.docx", b"PK\x03\x04\x14\0\x06\0\x08\0" + bytes((i * 89 + i // 5) & 255 for i in range(3000)),
             expect="DAMAGED", contains="noise.docx")
    out.case("cut.docx", whole[:len(whole) * 2 // 3], expect="document|DAMAGED")
    out.case("head.docx", whole[:40], expect="DAMAGED")
    out.case("plain.zip", archive({"a.txt": "hello", "b.png": RED_DOT}), expect="UNKNOWN_TYPE", contains="plain.zip")
    out.case("table.xlsx", archive({"_rels/.rels": links(("rId1", "officeDocument", "xl/workbook.xml")),
                                    "xl/workbook.xml": XML + "<workbook/>"}), expect="UNKNOWN_TYPE",
                                            contains="table.xlsx")
    out.case("empty.docx", docx(""), expect="EMPTY", contains="empty.docx")
    out.case("locked.docx", encrypted_zip(), expect="DAMAGED", contains="encrypted")
    out.case("locked.odt", odf("text", "", {"META-INF/manifest.xml": XML + "<m><encryption-data/></m>"}),
            expect="DAMAGED",
             contains="encrypted")
    out.case("rights.epub", epub(extra={"META-INF/encryption.xml": XML + '<e><EncryptionMethod '
            'Algorithm="urn:aes256-cbc"/>'
                                        '<CipherReference URI="OEBPS/text/a.xhtml"/></e>'}), expect="DAMAGED",
                                                contains="encrypted")
    out.case("old.doc", bytes.fromhex("d0cf11e0a1b11ae1") + bytes(2000), expect="UNKNOWN_TYPE", contains="DOCX")
    out.case("laughs.docx", docx(paragraph("&j;"), prefix=LAUGHS.replace("x [", "w:document [")),
            expect="DAMAGED|document|EMPTY",
             lacks="haha")
    out.case("laughs.odt", odf("text", "<office:text><text:p>&j;&file;</text:p></office:text>", prefix=LAUGHS),
             expect="DAMAGED|EMPTY|document", lacks="haha")
    out.case("laughs.epub", epub({"a.xhtml": LAUGHS + "<html><body><p>calm &j; &file;</p></body></html>"}),
            expect="document",
             lacks="haha")
    out.case("bomb.docx", bomb(300), expect="TOO_LARGE", contains="256 MiB", peak=700)
    out.case("long.docx", bomb(70), expect="document|DAMAGED", may_warn=1, peak=400)
    out.case("deep.docx", deep_xml(100000), expect="DAMAGED|document|EMPTY")
    out.case("deep.html", b"<html><body>" + b"<div>" * 100000 + b"bottom", expect="document", contains="bottom")
    out.case("many-links.html", b"<html>" + b"<a href=x>y</a></b>" * 50000, expect="document", contains="yyy")
    out.case("lies.docx", local_header_lies("word/document.xml", 65535), expect="DAMAGED|UNKNOWN_TYPE")
    out.case("climbs.docx", docx(drawing("rId7"), pictures=(("rId7", "../../../../etc/passwd", RED_DOT),)),
            expect="EMPTY|document",
             lacks="root")
    out.case("not-a-picture.docx", docx(drawing("rId7", "metafile") + paragraph("words"),
             pictures=(("rId7", "media/image1.emf", b"\1\0\0\0" + bytes(90)),)), expect="document", pictures=0,
             contains="[picture: metafile]\\nwords\\n")
    out.case("broken-picture.docx", docx(drawing("rId7"), pictures=(("rId7", "media/image1.png", RED_DOT[:30]),)),
            expect="document",
             pictures=1)
    out.case("about-html.txt", b"The first line says <html> and more.\n", expect="text", contains="<html>")
