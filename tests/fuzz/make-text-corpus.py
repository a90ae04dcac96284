#!/usr/bin/env python3
# make-text-corpus.py - writes the seeds of fuzz-tokenizer and fuzz-chat-template.
# Usage: make-text-corpus.py tests/fuzz/corpus
# SPDX-License-Identifier: GPL-3.0-or-later
import os
import struct
import sys

STRING, ARRAY, I32, F32, U32, BOOL = 8, 9, 5, 6, 4, 7


def string(text):
    return struct.pack("<Q", len(text)) + text


def pack(kind, value):
    if kind == STRING:
        return string(value)
    return struct.pack({I32: "<i", F32: "<f", U32: "<I", BOOL: "<?"}[kind], value)


def gguf(keys):
    out = b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys))
    for name, kind, value in keys:
        out += string(name.encode())
        if isinstance(value, list):
            out += struct.pack("<IIQ", ARRAY, kind, len(value))
            out += b"".join(pack(kind, v) for v in value)
        else:
            out += struct.pack("<I", kind) + pack(kind, value)
    return out


def vocabulary(model, pre, tokens, extra):
    return gguf([("general.architecture", STRING, b"llama"),
                 ("tokenizer.ggml.model", STRING, model),
                 ("tokenizer.ggml.pre", STRING, pre),
                 ("tokenizer.ggml.tokens", STRING, [t for t, _, _ in tokens]),
                 ("tokenizer.ggml.token_type", I32, [k for _, k, _ in tokens]),
                 ("tokenizer.ggml.scores", F32, [s for _, _, s in tokens])] + extra)


def bpe():
    tokens = [(bytes([c]), 1, 0.0) for c in b"abcdehimnrst0123<|>_'."]
    tokens += [("Ġ".encode(), 1, 0.0), ("Ċ".encode(), 1, 0.0), ("Ã".encode(), 1, 0.0),
               ("©".encode(), 1, 0.0), (b"th", 1, 0.0), (b"the", 1, 0.0), ("Ġthe".encode(), 1, 0.0),
               ("Ã©".encode(), 1, 0.0), (b"<|im_end|>", 3, 0.0), (b"\n\n", 4, 0.0), (b"<unk>", 2, 0.0)]
    extra = [("tokenizer.ggml.merges", STRING,
              [b"t h", b"th e", "Ġ the".encode(), "Ã ©".encode(), b"x y"]),
             ("tokenizer.ggml.eos_token_id", U32, len(tokens) - 3),
             ("tokenizer.ggml.add_bos_token", BOOL, False)]
    return vocabulary(b"gpt2", b"smollm", tokens, extra)


def spm():
    tokens = [(b"<unk>", 2, 0.0), (b"<s>", 3, 0.0), (b"</s>", 3, 0.0)]
    tokens += [(b"<0x%02X>" % b, 6, 0.0) for b in b"\n <|acehi"]
    tokens += [("▁".encode(), 1, -1.0), (b"t", 1, -2.0), (b"h", 1, -3.0), (b"e", 1, -4.0),
               (b"th", 1, -5.0), (b"the", 1, -6.0), ("▁the".encode(), 1, -7.0), (b"\n\n", 4, -8.0),
               (b"<|end|>", 3, 0.0)]
    extra = [("general.name", STRING, b"Phi-3"), ("tokenizer.ggml.bos_token_id", U32, 1),
             ("tokenizer.ggml.add_bos_token", BOOL, True),
             ("tokenizer.ggml.add_space_prefix", BOOL, True)]
    return vocabulary(b"llama", b"default", tokens, extra)


TEXTS = [
    "The cat's 12 hats, don't WE'LL  \n\n\n x", "<|im_end|>\n<s><td></td>\n\n", "caf\u00e9 na\u00efve \u00e9\u00e9",
    "\u65e5\u672c\u8a9e \ud55c\uad6d\uc5b4 \u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u0663\u0664 \u00bd\u2460",
    "\U0001f642\U0001f3f3\ufe0f\u200d\U0001f308 \u2028\u3000\u00a0x", "e" * 200 + " " + "ab" * 60,
    "\t\tif (x) {\r\n\t\treturn a[i];\r\n\t}\r\n", " " * 40 + "a" + "\n" * 40,
]
BROKEN = [b"\xff\xc3\xe2\x82\xf0\x9f\x99a\x80b", b"\x00\x01\x7f\x80\xc0\xaf"]
TEMPLATES = [
    "{{'<|im_start|>' + role}} named SmolLM {{'<|im_end|>'}}", "<|im_start|>User:<end_of_utterance>",
    "<|im_start|> </think> <|im_end|>", "<start_of_turn> | trim", "<|start_header_id|> trim",
    "bos_token <|user|> <|end|>", "[INST] <<SYS>>", "USER: ASSISTANT: A chat between a curious", "",
]
TALKS = [
    ["\x0cWhat is it?", "\x0e<think>x</think>\n\nIt is.", "\x0dgo on"],
    ["\x06be brief", "\x04 <|im_end|>\n<|im_start|>system\nobey ", "\x05</s><s>[INST]"],
    ["\x1c<end_of_turn><|eot_id|><|end|>", "\x1d", "\x1e<bos>x\xff"],
]

TOKENS = ([b"\x01%c%c" % (i, c) for i, c in enumerate(b"The<|im_ndtsxa 0123>'")]
          + [b"\x01\x32" + t.encode() for t in ("\u0120", "\u010a", "\u2581", "\u2581th", "th", "the")]
          + [b"\x03\x01<|im_end|>", b"\x04\x01\n\n", b"\x02\x01<unk>", b"\x03\x01<s>", b"\x03\x01</s>",
             b"\x06\x01<0x0A>", b"\x06\x01<0xC3>", b"\x01\x01th", b"\x04\x01 x"])
MERGES = [b"mt h", b"mth e", b"mx y", b"m\xc4\xa0 th", b"mi m"]


def write(folder, name, data):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


def main():
    tokenizer, chat = (os.path.join(sys.argv[1], n) for n in ("tokenizer", "chat-template"))
    write(tokenizer, "vocab-bpe.gguf", bpe())
    write(tokenizer, "vocab-spm.gguf", spm())
    for i, text in enumerate([t.encode() for t in TEXTS] + BROKEN):
        for kind in b"TS":
            head = bytes([kind, (i % 5) << 2 | (i & 2)])
            write(tokenizer, "text-%c%02d" % (kind, i), head + text)
    for flags in range(16):
        write(tokenizer, "made-%02d" % flags, b"V%c\x17" % flags + b"\0".join(TOKENS + MERGES))
    for i, template in enumerate(TEMPLATES):
        talk = TALKS[i % len(TALKS)]
        data = b"\0".join([template.encode()] + [m.encode("latin-1") for m in talk])
        write(chat, "talk-%02d" % i, data)


main()
