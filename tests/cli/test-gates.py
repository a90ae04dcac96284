#!/usr/bin/env python3
"""keepsake-cli gates: released gates become gates of ours, number for number; what is no gate, or another
model's, is refused with a sentence and leaves nothing behind; a hostile file runs nothing.

Usage: test-gates.py PROGRAM CASES.  Prints TAP.  Every check states a promise.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import collections
import io
import json
import os
import resource
import shutil
import signal
import struct
import warnings
import zipfile

import torchfile as torch
from clilib import CASES, GATE, HOME, MODEL, check, expect, expect_failure, main, run, write

LOCAL = os.path.join(CASES, "dbtrimkv", "gate_local.safetensors")
QWEN = os.path.join(CASES, "qwen2", "model.gguf")
MIDDLE = ".self_attn.retention_gate."


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    n = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + n])
    metadata = header.pop("__metadata__", {})
    out = {}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        expect(t["dtype"] == "F32", f"{name} is {t['dtype']}")
        out[name] = (t["shape"], list(struct.unpack_from(f"<{(end - begin) // 4}f", data, 8 + n + begin)))
    return out, metadata


TIED, LOCAL_GATE = read_safetensors(GATE)[0], read_safetensors(LOCAL)[0]


def release(name, data, config=None):
    """A folder as a release has it; config NULL: that of the tied gate."""
    folder = os.path.join(HOME.name, name)
    os.makedirs(folder)
    with open(os.path.join(folder, "trimkv_weights.pth"), "wb") as file:
        file.write(data)
    if config is None:
        shutil.copy(GATE.replace(".safetensors", ".config.json"), os.path.join(folder, "config.json"))
    elif config:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
    return folder


def import_gate(source, out, *more, model=MODEL):
    path = os.path.join(HOME.name, out)
    code, text, err = run("gates", "import", source, "--model", model, "--out", path, "--json", *more)
    expect(code == 0, f"import of {source}: exit {code}: {err}")
    return json.loads(text), *read_safetensors(path), path


def expect_refusal(code, source, *words, model=MODEL):
    """The import fails with that sentence and leaves no file."""
    before = sorted(os.listdir(HOME.name))
    out = os.path.join(HOME.name, "refused.safetensors")
    expect_failure(code, ["gates", "import", source, "--model", model, "--out", out], *words)
    expect(sorted(os.listdir(HOME.name)) == before, f"left behind: {sorted(os.listdir(HOME.name))}")


def refuse_bytes(code, data, *words):
    expect_refusal(code, write("hostile.pth", data), *words)


def with_member(data, name, content):
    """An archive with one more member, whether or not there is one of that name."""
    buffer = io.BytesIO(data)
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "a") as file:
        warnings.simplefilter("ignore")
        file.writestr(name, content)
    return buffer.getvalue()


def near(got, want, relative):
    return len(got) == len(want) and all(abs(a - b) <= relative * abs(b) for a, b in zip(got, want))


@check
def a_released_archive_becomes_the_same_gate():
    facts, tensors, metadata, path = import_gate(release("plain", torch.save(TIED)), "plain.safetensors")
    expect(tensors == TIED, "the numbers changed")
    expect(metadata["format"] == "keepsake-gate-1" and metadata["base"] == "tiny-llama", metadata)
    expect((facts["kind"], facts["tied"], facts["layers"], facts["kv_heads"], facts["width"], facts["gate_width"]) ==
           ("rg10", True, 2, 4, 256, 32), facts)
    expect(facts["parameters"] == 2 * (32 * 257 + 32 * 33) + 4 * 33 and facts["tensors"] == 12, facts)
    evict = ["inspect", "evict", "--model", MODEL, "--ids", ",".join(str(i % 90 + 5) for i in range(96)), "--entries",
             "8", "--json", "--gate"]
    ours, theirs = (run(*evict, gate) for gate in (path, GATE))
    expect(ours[0] == 0 and ours[1].replace(path, "") == theirs[1].replace(GATE, ""), "it evicts otherwise")


@check
def every_way_that_pytorch_writes_gives_the_same_numbers():
    for name, more in (("protocol4", {"protocol": 4}), ("parameters", {"parameters": True}),
                       ("packed", {"method": zipfile.ZIP_DEFLATED}), ("renamed", {"folder": "archive"}),
                       ("old", {"order": None})):
        _, tensors, _, _ = import_gate(release(name, torch.save(TIED, **more)), name + ".safetensors")
        expect(tensors == TIED, f"{name}: the numbers changed")


@check
def halves_are_widened():
    for kind, relative in (("BF16", 1 / 128), ("F16", 1 / 1024)):
        facts, tensors, _, _ = import_gate(release(kind, torch.save(TIED, kind=kind)), kind + ".safetensors")
        expect(facts["type"] == kind, facts)
        for name, (shape, values) in TIED.items():
            halves = torch.encode(values, kind)
            exact = ([struct.unpack("<f", b"\0\0" + halves[i:i + 2])[0] for i in range(0, len(halves), 2)]
                     if kind == "BF16" else list(struct.unpack(f"<{len(values)}e", halves)))
            expect(tensors[name] == (shape, exact), f"{kind}: {name} is not the stored half")
            expect(near([v for v in exact if abs(v) > 1e-3], [w for v, w in zip(exact, values) if abs(v) > 1e-3],
                        relative), f"{name} is far off")


@check
def parts_and_turned_parts_of_one_storage_are_found():
    calls, data, at = collections.OrderedDict(), [], 3
    total = 3 + sum(len(values) for _, values in TIED.values())
    for name, (shape, values) in TIED.items():
        if len(shape) == 2:  # stored column by column
            rows, cols = shape
            calls[name] = torch.tensor("all", "F32", shape, total, at, (1, rows))
            data += [values[r * cols + c] for c in range(cols) for r in range(rows)]
        else:
            calls[name] = torch.tensor("all", "F32", shape, total, at)
            data += values
        at += len(values)
    pth = torch.archive(torch.dump(calls), {"all": torch.encode([9.0, 9.0, 9.0] + data, "F32")})
    _, tensors, _, _ = import_gate(release("parts", pth), "parts.safetensors")
    expect(tensors == TIED, "the numbers changed")


@check
def kinds_and_ties_are_found_from_the_numbers():
    config = {"retention_gate": "rg", "base_model": "tiny-llama"}
    facts, tensors, _, path = import_gate(release("local", torch.save(LOCAL_GATE), config), "local.safetensors")
    expect(tensors == LOCAL_GATE and facts["kind"] == "rg" and not facts["tied"], facts)
    with open(path.replace(".safetensors", ".config.json"), encoding="utf-8") as file:
        written = json.load(file)
    expect(written == {"base_model": "tiny-llama", "retention_gate": "rg", "retention_gate_intermediate_size": 32,
                       "tie_retention_gate_layers": False, "hidden_size": 256, "num_hidden_layers": 2,
                       "num_key_value_heads": 4}, written)
    untied = dict(TIED)
    name = "model.layers.1" + MIDDLE + "linear3.weight"
    untied[name] = (TIED[name][0], TIED[name][1][:-1] + [0.5])
    facts, tensors, _, _ = import_gate(release("untied", torch.save(untied)), "untied.safetensors")
    expect(tensors == untied and facts["kind"] == "rg10" and not facts["tied"], facts)
    expect(facts["parameters"] == 2 * (32 * 257 + 32 * 33 + 4 * 33), facts)


@check
def a_model_with_eyes_and_other_tensors_are_no_hindrance():
    named = {n.replace("model.layers", "model.language_model.layers"): t for n, t in TIED.items()}
    named["lm_head.weight"] = ([2, 2], [0.0] * 4)
    config = {"base_model": "tiny-llama", "text_config": {"retention_gate": "rg10", "hidden_act": "silu",
                                                          "num_key_value_heads": 4}, "vision_config": {"x": [1]}}
    facts, tensors, _, _ = import_gate(release("eyes", torch.save(named), config), "eyes.safetensors")
    expect(len(tensors) == 12 and facts["other_tensors"] == 1 and facts["activation"] == "silu", facts)
    _, tensors, metadata, _ = import_gate(GATE, "again.safetensors")
    expect(tensors == TIED and metadata["base"] == "tiny-llama", "safetensors are taken as they are")


@check
def heads_of_locret_are_taken_too():
    heads = {}
    for layer in range(2):
        for number, (rows, cols) in ((1, (16, (8 + 2 * 4) * 32)), (2, (4, 16))):
            values = [struct.unpack("<f", struct.pack("<f", (i * 37 % 101 - 50) / 500))[0] for i in range(rows * cols)]
            heads[f"model.layers.{layer}.self_attn.fc{number}.weight"] = ([rows, cols], values)
    more = dict(heads)
    more["model.norm.weight"] = ([2], [1.0, 1.0])
    facts, tensors, _, path = import_gate(release("locret", torch.save(more), {}), "locret.safetensors")
    expect(tensors == heads and facts["kind"] == "locret" and facts["other_tensors"] == 1, facts)
    code, _, err = run("ask", "--model", MODEL, "--gate", path, "--policy", "locret", "--max-tokens", "2", "hello")
    expect(code == 0, err)
    mixed = dict(heads)
    mixed.update({n: t for n, t in TIED.items() if "layers.0" in n})
    expect_refusal(1, release("mixed", torch.save(mixed), {}), "two kinds")
    del heads["model.layers.1.self_attn.fc2.weight"]
    expect_refusal(1, release("lost", torch.save(heads), {}), "layer 1 has no fc2.weight")


@check
def a_gate_for_another_model_is_refused():
    source = release("other", torch.save(TIED), {"base_model": "Qwen/Qwen3-4B", "retention_gate": "rg10"})
    expect_refusal(4, source, "trimkv_weights.pth is a gate for Qwen/Qwen3-4B", "the loaded model is a llama model")
    expect_refusal(4, GATE, "is a gate for", model=QWEN)
    three = dict(TIED)
    three.update({n.replace("layers.1", "layers.2"): t for n, t in TIED.items() if "layers.1" in n})
    expect_refusal(4, release("three", torch.save(three), {}), "another model", "layers")
    code, out, err = run("gates", "inspect", GATE, "--model", QWEN, "--json")
    expect(code == 4 and json.loads(out)["fits"] is False and "is a gate for" in err, err)
    code, out, _ = run("gates", "inspect", GATE, "--model", MODEL)
    expect(code == 0 and "tied           yes" in out and out.rstrip().endswith("fits           yes"), out)


@check
def kinds_that_are_not_known_are_refused():
    expect_refusal(4, release("rg9", torch.save(TIED), {"retention_gate": "rg9"}), "rg9", "rg10")
    more = dict(TIED)
    more["model.layers.0" + MIDDLE + "linear4.weight"] = ([2], [1.0, 2.0])
    expect_refusal(4, release("more", torch.save(more)), "linear4.weight")
    expect_refusal(4, release("none", torch.save({"a.weight": ([2], [1.0, 2.0])})), "holds no gate")
    lame = {n: t for n, t in TIED.items() if n != "model.layers.1" + MIDDLE + "linear1.bias"}
    expect_refusal(1, release("lame", torch.save(lame)), "layer 1 has no retention_gate.linear1.bias")
    odd = dict(TIED)
    name = "model.layers.1" + MIDDLE + "linear2.bias"
    odd[name] = ([31], TIED[name][1][:31])
    expect_refusal(1, release("odd", torch.save(odd)), "linear2.bias of layer 1 has the wrong shape")
    broken = dict(TIED)
    broken[name] = (TIED[name][0], TIED[name][1][:-1] + [float("nan")])
    expect_refusal(1, release("nan", torch.save(broken)), "no number", name)


def no_room():
    """As a full disk has it: writing behind 20,000 bytes of a file fails."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))


@check
def a_full_disk_leaves_nothing_behind():
    before = sorted(os.listdir(HOME.name))
    expect_failure(1, ["gates", "import", GATE, "--model", MODEL, "--out", os.path.join(HOME.name, "f.safetensors")],
                   f"cannot write {HOME.name}: ", preexec_fn=no_room)
    expect(sorted(os.listdir(HOME.name)) == before, f"left behind: {sorted(os.listdir(HOME.name))}")


@check
def nothing_that_a_pickle_asks_for_is_run():
    mark = os.path.join(HOME.name, "ran")
    for module, name, args in (("posix", "system", ("touch " + mark,)), ("builtins", "eval", (f"open({mark!r}, 'w')",)),
                               ("torch", "load", (mark,)), ("torch._utils", "_rebuild_tensor", ()),
                               ("collections", "OrderedDict\0", ())):
        for protocol in (2, 4):
            call = torch.dump({"a": torch.Call(torch.Name(module, name), *args)}, protocol)
            refuse_bytes(4, torch.archive(call, {}), "nothing is run")
    expect(not os.path.exists(mark), "the code of a pickle ran")
    # Instances and their own names, extension codes, old operations: none of them is known.
    for operations in (b"(iposix\nsystem\n.", b"(cposix\nsystem\no.", b"\x82\x01.", b"]\x81.", b"I1\n.", b"0."):
        refuse_bytes(4, torch.archive(b"\x80\x02" + operations, {}), "run" if b"(c" in operations else "operation")


@check
def damaged_lists_of_tensors_are_refused():
    name = "model.layers.0" + MIDDLE + "bias"
    for operations, words in (
            (b"", ["damaged"]), (b".", ["damaged"]), (b"N.", ["no dictionary"]), (b"}(N.", ["damaged"]),
            (b"h\x07.", ["damaged"]), (b"}(NNNu.", ["damaged"]), (b"t.", ["damaged"]), (b"(Q.", ["damaged"]),
            (b"NNs.", ["damaged"]), (b"\x87.", ["damaged"]), (b"Na.", ["damaged"]), (b"(e.", ["damaged"]),
            (b"X\xff\xff\xff\xffab.", ["damaged"]), (b"\x8a\x09" + bytes(9) + b".", ["damaged"]),
            (b"Nb.", ["damaged"]), (b"ccollections\nOrderedDict\nK\x01\x85R.", ["damaged"])):
        refuse = torch.archive(b"\x80\x02" + operations, {})
        expect_refusal(4 if words == ["no dictionary"] else 1, write("hostile.pth", refuse), *words)
    # A dictionary that contains itself is walked once.
    refuse_bytes(4, torch.archive(b"\x80\x02}q\x00(X\x01\x00\x00\x00ah\x00X\x01\x00\x00\x00bh\x00u.", {}), "no gate")
    for call, words in (
            (torch.tensor("0", "F32", [4], 3), ["beyond"]),
            (torch.tensor("0", "F32", [4], 4, 1), ["beyond"]),
            (torch.tensor("0", "F32", [4], 4, 0, (2,)), ["beyond"]),
            (torch.tensor("0", "F32", [4], 4, 2 ** 62 + 1), ["damaged"]),
            (torch.tensor("0", "F32", [2 ** 33], 4), ["impossible shape"]),
            (torch.tensor("0", "F32", [4], 4, 0, (-1,)), ["impossible shape"]),
            (torch.tensor("0", "F32", [0], 4), ["impossible shape"]),
            (torch.tensor("0", "F32", [4], -1), ["damaged"]),
            (torch.tensor("../0", "F32", [4]), ["damaged"])):
        refuse_bytes(1, torch.archive(torch.dump({name: call}), {"0": bytes(16)}), *words)
    refuse_bytes(4, torch.archive(torch.dump({name: torch.tensor("0", "F32", [1] * 5)}), {}), "5 dimensions")
    # The same elements again and again, by steps of 0 or rows that overlap.
    for shape, stored, steps in (([1 << 28], 1, (0,)), ([4, 4], 10, (2, 1))):
        call = torch.tensor("0", "F32", shape, stored, 0, steps)
        refuse_bytes(1, torch.archive(torch.dump({name: call}), {"0": bytes(4 * stored)}), "more elements than")
    # What they would take in memory is counted before it is taken.
    many = {f"model.layers.{i}{MIDDLE}bias": torch.tensor("0", "F32", [1 << 28], 1 << 28) for i in range(3)}
    refuse_bytes(4, torch.archive(torch.dump(many), {"0": bytes(4)}), "2 GiB")
    # A kind of numbers that no gate has.
    for kind in ("LongStorage", "DoubleStorage", "UntypedStorage"):
        call = torch.Call(torch.Name("torch._utils", "_rebuild_tensor_v2"), torch.Name("torch", kind))
        refuse_bytes(4, torch.archive(torch.dump({name: call}), {"0": bytes(16)}), kind, "nothing is run")


@check
def damaged_archives_are_refused():
    call = {"model.layers.0" + MIDDLE + "bias": torch.tensor("0", "F32", [4])}
    refuse_bytes(1, torch.archive(torch.dump(call), {}), "data of tensor", "missing")
    refuse_bytes(1, torch.archive(torch.dump(call), {"0": bytes(12)}), "another length")
    refuse_bytes(1, torch.archive(torch.dump(call), {"0": bytes(20)}), "another length")
    refuse_bytes(4, torch.archive(torch.dump(call), {"0": bytes(16)}, order="big"), "largest byte first")
    refuse_bytes(4, torch.archive(b"", {}, folder="a/b"), "no data.pkl")
    good = torch.archive(torch.dump(call), {"0": bytes(16)})
    refuse_bytes(1, with_member(good, "other/data.pkl", torch.dump(call)), "two lists")
    with zipfile.ZipFile(io.BytesIO(good)) as file:
        list_name = next(name for name in file.namelist() if name.endswith("/data.pkl"))
    refuse_bytes(1, with_member(good, list_name, b"\x80\x02}."), "two lists")
    refuse_bytes(1, with_member(good, list_name.replace("data.pkl", "data/0"), bytes(16)), "twice")
    for n in range(0, len(good), 7):  # cut anywhere: one sentence, and nothing else
        code, _, err = run("gates", "inspect", write("cut.pth", good[:n]))
        expect(code in (1, 4) and err.count("\n") == 1 and "keepsake-cli: " in err, f"{n} bytes: {code} {err}")
    refuse_bytes(1, b"PK\3\4 not a zip", "damaged")
    refuse_bytes(4, b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.", "before 1.6")
    refuse_bytes(1, b"plain text", "safetensors")
    # A zip bomb costs what the pickle said the tensor has, no more.
    refuse_bytes(1, torch.archive(torch.dump(call), {"0": bytes(200 << 20)}, method=zipfile.ZIP_DEFLATED),
                 "another length")
    refuse_bytes(4, torch.archive(bytes(64 << 20), {}, method=zipfile.ZIP_DEFLATED), "longer than 4194304 bytes")
    whole = torch.save(TIED)
    complete = run("gates", "inspect", write("cut.pth", whole))[1]
    for n in range(0, len(whole), len(whole) // 40):
        code, out, err = run("gates", "inspect", write("cut.pth", whole[:n]))
        # Behind the last member there is only the zip's directory, which can be done without.
        expect(code in (1, 4) and err.startswith("keepsake-cli: ") or out == complete and n > whole.rindex(b"3\n"),
               f"cut to {n}: exit {code}: {err}")
    for n in range(30, len(whole), len(whole) // 40):
        turned = whole[:n] + bytes([whole[n] ^ 0x55]) + whole[n + 1:]
        code, _, err = run("gates", "inspect", write("turned.pth", turned))
        expect(code in (0, 1, 4), f"byte {n}: exit {code}: {err}")


@check
def files_that_are_there_are_kept():
    out = write("kept.safetensors", b"mine")
    args = ["gates", "import", GATE, "--model", MODEL, "--out", out]
    expect_failure(1, args, "exists", "--force")
    with open(out, "rb") as file:
        expect(file.read() == b"mine", "it was replaced")
    expect(run(*args, "--force")[0] == 0 and read_safetensors(out)[0] == TIED, "--force replaces it")
    expect_failure(2, ["gates", "import", GATE, "--model", MODEL, "--out", out + ".bin"], ".safetensors")
    expect_failure(2, ["gates", "import", GATE, "--model", MODEL], "--out")
    expect_failure(2, ["gates", "inspect"], "one gate file")
    expect_failure(1, ["gates", "import", GATE, "--model", MODEL, "--out", HOME.name + "/no/x.safetensors"], "no")
    expect_failure(1, ["gates", "inspect", HOME.name + "/missing.pth"], "missing.pth")
    expect_failure(4, ["gates", "inspect", CASES], "trimkv_weights.pth")


if __name__ == "__main__":
    raise SystemExit(main())
