#!/usr/bin/env python3
"""Writes vision towers of real width with random weights, to measure on: smolvlm (the 256M model's
tower, 512-pixel tiles) and qwen2.5-vl (the 3B model's), each with F16 and with Q8_0 matrices.

  make-vision.py FOLDER [--only NAME]      2.2 GB in all

Nothing they say has a meaning; only shapes, types and the work are those of the real files.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import argparse
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from ggufwriter import F16, F32, Q8_0, head_bytes, pad  # noqa: E402


def n_bytes(shape, kind):
    n = int(np.prod(shape))
    return {F32: 4 * n, F16: 2 * n, Q8_0: n // 32 * 34}[kind]


def encode(values, kind):
    if kind == F32:
        return values.astype("<f4").tobytes()
    if kind == F16:
        return values.astype("<f2").tobytes()
    blocks = values.reshape(-1, 32)
    scale = np.abs(blocks).max(axis=1) / 127
    codes = np.rint(blocks / np.where(scale > 0, scale, 1)[:, None]).astype(np.int8)
    out = np.empty((len(blocks), 34), np.uint8)
    out[:, :2] = scale.astype("<f2")[:, None].view(np.uint8)
    out[:, 2:] = codes.view(np.uint8)
    return out.tobytes()


def write(path, keys, shapes, kind, seed):
    """shapes: name -> shape, rows first; matrices take kind, F16 where they have no whole blocks; vectors f32."""
    rng = np.random.default_rng(seed)
    kinds = {n: F32 if len(s) == 1 or "position" in n else kind if len(s) == 2 and s[-1] % 32 == 0 else F16
             for n, s in shapes.items()}
    tensors = {n: (s, kinds[n], n_bytes(s, kinds[n])) for n, s in shapes.items()}
    with open(path + ".part", "wb") as f:
        f.write(head_bytes(keys, tensors))
        for name, shape in shapes.items():
            is_gain = name.endswith((".ln1.weight", ".ln2.weight", "post_ln.weight"))
            values = rng.standard_normal(shape, np.float32) * (0.1 if len(shape) == 1 else shape[-1] ** -0.5)
            f.write(pad(encode(values + 1 if is_gain else values, kinds[name])))
    os.replace(path + ".part", path)


def common(projector, n_embd, n_ff, n_layer, n_head, n_out, patch, image):
    v = "clip.vision."
    return {"general.architecture": "clip", "general.type": "mmproj", "clip.has_vision_encoder": True,
            "clip.projector_type": projector, v + "image_size": image, v + "patch_size": patch,
            v + "embedding_length": n_embd, v + "feed_forward_length": n_ff, v + "block_count": n_layer,
            v + "attention.head_count": n_head, v + "attention.layer_norm_epsilon": 1e-6, v + "projection_dim": n_out}


def block(i, n_embd, n_ff, names, has_norm_bias):
    b = f"v.blk.{i}."
    out = {}
    for name in names:
        n_out, n_in = {"ffn_up": (n_ff, n_embd), "ffn_gate": (n_ff, n_embd),
                       "ffn_down": (n_embd, n_ff)}.get(name, (n_embd, n_embd))
        out |= {b + name + ".weight": (n_out, n_in), b + name + ".bias": (n_out,)}
    for name in ("ln1", "ln2"):
        out |= {b + name + ".weight": (n_embd,)} | ({b + name + ".bias": (n_embd,)} if has_norm_bias else {})
    return out


ATTENTION = ("attn_q", "attn_k", "attn_v", "attn_out")


def smolvlm():
    d, ff, layers, out, patch, image, scale = 768, 3072, 12, 576, 16, 512, 4
    keys = common("idefics3", d, ff, layers, 12, out, patch, image)
    keys |= {"clip.use_gelu": True, "clip.vision.image_mean": [0.5] * 3, "clip.vision.image_std": [0.5] * 3,
             "clip.vision.projector.scale_factor": scale, "clip.vision.preproc_image_size": 2048}
    shapes = {"v.patch_embd.weight": (d, 3, patch, patch), "v.patch_embd.bias": (d,),
              "v.position_embd.weight": ((image // patch) ** 2, d), "v.post_ln.weight": (d,), "v.post_ln.bias": (d,),
              "mm.model.fc.weight": (out, d * scale * scale)}
    for i in range(layers):
        shapes |= block(i, d, ff, ATTENTION + ("ffn_up", "ffn_down"), True)
    return keys, shapes


def qwen25vl():
    d, ff, layers, out, patch = 1280, 3420, 32, 2048, 14
    keys = common("qwen2.5vl_merger", d, ff, layers, 16, out, patch, 560)
    keys |= {"clip.use_silu": True, "clip.vision.n_wa_pattern": 8,
             "clip.vision.image_mean": [0.48145466, 0.4578275, 0.40821073],
             "clip.vision.image_std": [0.26862954, 0.26130258, 0.27577711]}
    shapes = {"v.patch_embd.weight": (d, 3, patch, patch), "v.patch_embd.weight.1": (d, 3, patch, patch),
              "v.post_ln.weight": (d,), "mm.0.weight": (4 * d, 4 * d), "mm.0.bias": (4 * d,),
              "mm.2.weight": (out, 4 * d), "mm.2.bias": (out,)}
    for i in range(layers):
        shapes |= block(i, d, ff, ATTENTION + ("ffn_gate", "ffn_up", "ffn_down"), False)
    return keys, shapes


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder")
    parser.add_argument("--only", default="", help="only files whose name contains this")
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    for name, make in (("smolvlm", smolvlm), ("qwen2.5-vl", qwen25vl)):
        for label, kind in (("f16", F16), ("q8_0", Q8_0)):
            path = os.path.join(args.folder, f"{name}-{label}.gguf")
            if args.only in path and not os.path.exists(path):
                write(path, *make(), kind, 7)
                print(f"{path}: {os.path.getsize(path) / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
