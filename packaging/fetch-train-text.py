#!/usr/bin/env python3
"""Gathers openly licensed English text from Debian packages for `keepsake-cli train gates`.

Usage: fetch-train-text.py FOLDER [--held-out-part 0.1]
Packages are downloaded with `apt-get download` and unpacked, never installed.  FOLDER/train and
FOLDER/held-out get plain text (which of the two a file goes to depends on its name alone), and
FOLDER/sources.json says of each package its version, checksum and licence.
Exit status: 0 ready, 1 failed (one sentence on stderr).
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import argparse
import fnmatch
import gzip
import hashlib
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

# names: the first one that the distribution has; paths: what is taken of it, as shell patterns.
SOURCES = [
    {"names": ["debian-handbook"], "kind": "html", "paths": ["usr/share/doc/debian-handbook/html/en-US/*.html"],
     "what": "The Debian Administrator's Handbook", "licence": "GPL-2.0-or-later or CC-BY-SA-3.0"},
    {"names": ["debian-reference-en"], "kind": "text.gz", "paths": ["usr/share/debian-reference/*.en.txt.gz"],
     "what": "Debian Reference", "licence": "GPL-2.0-or-later"},
    {"names": ["python3.11-doc", "python3.12-doc", "python3.13-doc"], "kind": "text",
     "paths": [f"usr/share/doc/python3.*/html/_sources/{part}/*.txt"
               for part in ("tutorial", "howto", "faq", "using", "reference")],
     "what": "Python's tutorial, guides, questions and reference", "licence": "PSF-2.0"},
    {"names": ["r-cran-janeaustenr"], "kind": "r-data",
     "paths": ["usr/lib/R/site-library/janeaustenr/data/Rdata.rdb"],
     "what": "novels by Jane Austen", "licence": "public domain (the package: MIT)"},
]
BLOCKS = {"p", "div", "li", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6", "tr", "pre", "blockquote", "table", "ul",
          "ol"}
SILENT = {"script", "style", "head", "nav", "footer"}
SIGNPOSTS = {"Prev", "Next", "Up", "Home", "Download the ebook", "The Debian Administrator's Handbook"}
PART_BYTES = 200_000  # a book is cut into files of about this size, so that some of it can be held out


class FetchError(Exception):
    """One sentence for the user."""


class PageText(html.parser.HTMLParser):
    """The words of a page, a paragraph for each block."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.parts, self.silent, self.pre = [], 0, 0

    def handle_starttag(self, tag, attrs):
        if tag in SILENT:
            self.silent += 1
        if tag in BLOCKS:
            self.parts.append("\n\n")
        if tag == "br":
            self.parts.append("\n")
        self.pre += tag == "pre"

    def handle_endtag(self, tag):
        if tag in SILENT and self.silent:
            self.silent -= 1
        if tag in BLOCKS:
            self.parts.append("\n\n")
        if tag == "pre" and self.pre:
            self.pre -= 1

    def handle_data(self, data):
        if not self.silent:
            self.parts.append(data if self.pre else re.sub(r"\s+", " ", data))

    def text(self):
        return "".join(self.parts)


def tidy(text):
    """One empty line between paragraphs, none of them in front, no trailing blanks."""
    text = text.replace("\r\n", "\n").replace("\u00a0", " ")
    text = re.sub(r"[ \t]+\n", "\n", text)
    text = re.sub(r"\n[ \t]+(?=\n)", "\n", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def read_html(data):
    page = PageText()
    page.feed(data.decode("utf-8", "replace"))
    paragraphs = re.split(r"\n\s*\n", page.text())
    return ["\n\n".join(re.sub("^ ", "", p) for p in paragraphs if p.strip() not in SIGNPOSTS)]


def r_streams(data):
    """What a database of R objects holds: zlib streams, each behind its length in four bytes."""
    at = 0
    while at + 5 < len(data):
        unpacker = zlib.decompressobj()
        try:
            yield unpacker.decompress(data[at + 4:]) + unpacker.flush()
        except zlib.error as e:
            raise FetchError("the novels are packed in a way that is not known") from e
        at = len(data) - len(unpacker.unused_data)


def read_r_data(data):
    """The longest vector of lines in each object; a string is 00 04 00 09, four bytes of length, the text."""
    books = []
    for stream in r_streams(data):
        lines, at = [], 0
        while (at := stream.find(b"\x00\x04\x00\x09", at)) >= 0:
            n = int.from_bytes(stream[at + 4:at + 8], "big", signed=True)
            if 0 <= n <= 4096:
                lines.append(stream[at + 8:at + 8 + n].decode("utf-8", "replace"))
                at += 8 + n
            else:
                at += 4
        if len(lines) > 1000:
            books.append(join_lines(lines))
    if not books:
        raise FetchError("the package with the novels holds no text that is known")
    return books


def join_lines(lines):
    """Lines of a book as paragraphs: an empty line ends one."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", "\n".join(lines))


READERS = {"html": read_html, "text": lambda data: [data.decode("utf-8", "replace")],
           "text.gz": lambda data: [gzip.decompress(data).decode("utf-8", "replace")], "r-data": read_r_data}


def cut(text):
    """Pieces of about PART_BYTES that end between two paragraphs."""
    pieces, piece, size = [], [], 0
    for paragraph in text.split("\n\n"):
        piece.append(paragraph)
        size += len(paragraph) + 2
        if size >= PART_BYTES:
            pieces.append("\n\n".join(piece) + "\n")
            piece, size = [], 0
    if size > 2000 or not pieces:
        pieces.append("\n\n".join(piece))
    return pieces


def run(command, **more):
    try:
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more).stdout
    except FileNotFoundError as e:
        raise FetchError(f"{command[0]} is not there: this needs a Debian or Ubuntu system") from e
    except subprocess.CalledProcessError as e:
        detail = e.stderr.decode("utf-8", "replace").strip().splitlines()
        raise FetchError(f"{' '.join(command[:3])} failed: {detail[-1] if detail else 'no reason given'}") from e


def download(names, folder):
    """The first of the packages that can be had; its file and name."""
    for name in names:
        if not is_known(name):
            continue
        run(["apt-get", "download", "-qq", name], cwd=folder)
        for file in os.listdir(folder):
            if file.startswith(name + "_") and file.endswith(".deb"):
                return os.path.join(folder, file), name
    raise FetchError(f"no package of these is known: {', '.join(names)}; try `apt-get update`")


def is_known(name):
    return subprocess.run(["apt-cache", "show", name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def is_held_out(name, part):
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") < part * 2**32


def write_texts(source, package, root, out, part):
    n_bytes = {"train": 0, "held-out": 0}
    for folder, _, files in sorted(os.walk(root)):
        for file in sorted(files):
            path = os.path.join(folder, file)
            inner = os.path.relpath(path, root)
            if not any(fnmatch.fnmatch(inner, pattern) for pattern in source["paths"]):
                continue
            with open(path, "rb") as f:
                texts = READERS[source["kind"]](f.read())
            stem = re.sub(r"[^A-Za-z0-9]+", "-", os.path.splitext(file)[0]).strip("-")
            for i, piece in enumerate(p for text in texts for p in cut(tidy(text))):
                if len(piece) < 2000:
                    continue
                name = f"{package}-{stem}-{i:03}.txt"
                where = "held-out" if is_held_out(name, part) else "train"
                with open(os.path.join(out, where, name), "w", encoding="utf-8") as f:
                    f.write(piece)
                n_bytes[where] += len(piece.encode())
    if not any(n_bytes.values()):
        raise FetchError(f"{package} holds none of the texts that are looked for")
    return n_bytes


def fetch(source, out, part):
    with tempfile.TemporaryDirectory(prefix="keepsake-text-") as temp:
        os.chmod(temp, 0o755)
        deb, package = download(source["names"], temp)
        root = os.path.join(temp, "root")
        run(["dpkg-deb", "-x", deb, root])
        n_bytes = write_texts(source, package, root, out, part)
        with open(deb, "rb") as f:
            digest = hashlib.sha256(f.read()).hexdigest()
        version = run(["dpkg-deb", "-f", deb, "Version"]).decode().strip()
    print(f"{package} {version}: {n_bytes['train']:,} bytes to train on, {n_bytes['held-out']:,} held out",
          file=sys.stderr)
    return {"package": package, "version": version, "sha256": digest, "what": source["what"],
            "licence": source["licence"], "train_bytes": n_bytes["train"], "held_out_bytes": n_bytes["held-out"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--held-out-part", type=float, default=0.1, help="of the files (default 0.1)")
    options = parser.parse_args()
    for where in ("train", "held-out"):
        shutil.rmtree(os.path.join(options.folder, where), ignore_errors=True)
        os.makedirs(os.path.join(options.folder, where))
    sources = [fetch(source, options.folder, options.held_out_part) for source in SOURCES]
    with open(os.path.join(options.folder, "sources.json"), "w", encoding="utf-8") as f:
        json.dump({"format": "keepsake-train-text-1", "held_out_part": options.held_out_part, "sources": sources}, f,
                  indent=2)
        f.write("\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (FetchError, OSError) as e:
        print(f"fetch-train-text.py: {e}", file=sys.stderr)
        sys.exit(1)
