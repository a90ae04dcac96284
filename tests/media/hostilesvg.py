"""SVG drawings, sound and hostile; used by picturecases.py."""
# SPDX-License-Identifier: GPL-3.0-or-later
import base64
import gzip

SPACE = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


def svg(body, size='width="40" height="20"', before=""):
    return f"{before}<svg {SPACE} {size}>{body}</svg>".encode()


def rect(color, box="width='40' height='20'"):
    return f"<rect {box} fill='{color}'/>"


def picture(address):
    return f"<image width='40' height='20' preserveAspectRatio='none' href='{address}' xlink:href='{address}'/>"


def data_address(data, kind="image/png"):
    return f"data:{kind};base64," + base64.b64encode(data).decode()


def laughs(n=10):
    """Each entity is ten of the one before."""
    lines = ['<!ENTITY a0 "ha">'] + [f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, n)]
    return svg(f"<text y='15'>&a{n - 1};</text>", before=f"<!DOCTYPE svg [{''.join(lines)}]>")


def copies(n=30):
    """Each group shows the one before ten times."""
    body = "<g id='g0'>" + rect("red") + "</g>"
    body += "".join(f"<g id='g{i}'>" + f"<use xlink:href='#g{i - 1}'/>" * 10 + "</g>" for i in range(1, n))
    return svg(f"<defs>{body}</defs><use xlink:href='#g{n - 1}'/>")


def nested(n):
    return svg("<g>" * n + rect("red") + "</g>" * n)


def packed(data):
    return gzip.compress(data, 9, mtime=0)
