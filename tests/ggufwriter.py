"""GGUF files (version 3) for tests and benches, written plainly."""
# SPDX-License-Identifier: GPL-3.0-or-later
import struct

ALIGN = 32
F32, F16, Q8_0 = 0, 1, 8


def text_bytes(s):
    raw = s.encode("utf-8")
    return struct.pack("<Q", len(raw)) + raw


def key_bytes(name, value):
    """value: bool, int (u32), float (f32), str, or a list of str, float (f32) or int (i32)."""
    head = text_bytes(name)
    if isinstance(value, bool):
        return head + struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return head + struct.pack("<II", 4, value)
    if isinstance(value, float):
        return head + struct.pack("<If", 6, value)
    if isinstance(value, str):
        return head + struct.pack("<I", 8) + text_bytes(value)
    if isinstance(value[0], str):
        return head + struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text_bytes, value))
    kind, letter = (6, "f") if isinstance(value[0], float) else (5, "i")
    return head + struct.pack("<IIQ", 9, kind, len(value)) + struct.pack(f"<{len(value)}{letter}", *value)


def pad(data):
    return data + b"\0" * (-len(data) % ALIGN)


def head_bytes(keys, tensors):
    """tensors: name -> (shape, rows first; type; bytes); their data follow in this order, each padded."""
    out = struct.pack("<IIQQ", 0x46554747, 3, len(tensors), len(keys))
    out += b"".join(key_bytes(k, v) for k, v in keys.items())
    at = 0
    for name, (shape, kind, n_bytes) in tensors.items():
        out += text_bytes(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
        out += struct.pack("<IQ", kind, at)
        at += n_bytes + -n_bytes % ALIGN
    return pad(out)


def write_f32(path, keys, tensors):
    """tensors: name -> array; the last dimension is the fast one."""
    head = head_bytes(keys, {name: (a.shape, F32, 4 * a.size) for name, a in tensors.items()})
    with open(path, "wb") as f:
        f.write(head + b"".join(pad(a.astype("<f4").tobytes()) for a in tensors.values()))
