#!/usr/bin/env python3
"""keepsake-cli inspect vision on the tiny towers: sizes, tiles, tokens, arrays against the cases.

Usage: test-inspect-vision.py PROGRAM CASES.  Prints TAP.  Every check states a promise.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
import struct
import sys
import zlib

from clilib import CASES, HOME, MODEL, check, expect, expect_failure, main, run, write

FAMILIES = ("gemma3-vision", "idefics3", "llava-1.5", "qwen2-vl", "qwen2.5-vl", "qwen3-vl")
ORDER = {"f32": "f", "i32": "i"}


def path_of(case, name):
    return os.path.join(CASES, case, name)


def load_case(case):
    with open(path_of(case, "expected.json"), encoding="utf-8") as file:
        expected = json.load(file)
    with open(path_of(case, "expected.bin"), "rb") as file:
        return expected, file.read()


def read_array(arrays, data, name):
    array = arrays[name]
    count = array["nbytes"] // 4
    return struct.unpack_from(f"<{count}{ORDER[array['dtype']]}", data, array["offset"])


def make_png(name, width, height, rgb=b"\x20\x80\xe0"):
    """A plain picture of one colour."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    rows = (b"\0" + rgb * width) * height
    return write(name, b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                 chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def inspect(case, *args):
    code, out, err = run("inspect", "vision", "--mmproj", path_of(case, "mmproj.gguf"), "--json", *args)
    expect(code == 0, f"{case} {args}: exit {code}: {err}")
    return json.loads(out)


def caps(expected):
    rule = expected.get("preprocess", {})
    return [f"--{name}-pixels={rule[name + '_pixels']}" for name in ("min", "max") if name + "_pixels" in rule]


def compare(name, got, want, tolerance):
    expect(len(got) == len(want), f"{name}: {len(got)} numbers, want {len(want)}")
    worst = max(abs(a - b) for a, b in zip(got, want))
    expect(worst <= tolerance, f"{name} is off by up to {worst}, {tolerance} is allowed")


def check_image(case, expected, reference, image):
    dump = os.path.join(HOME.name, f"{case}-{image['case']}.bin")
    files = [f"--image={path_of(case, name)}" for name in image.get("files", [image.get("file")])]
    result = inspect(case, *files, "--dump", dump, *caps(expected))
    with open(dump, "rb") as file:
        data = file.read()
    expect(result["n_tokens"] == image["n_image_tokens"], f"{case}: {result['n_tokens']} tokens")
    if "rows" in image:
        expect(result["tiles"] == {"rows": image["rows"], "cols": image["cols"], "overview": True}, result["tiles"])
        expect(len(result["views"]) == image["n_tiles"], "views")
    if "resized_to" in image:
        expect(list(result["resized"].values()) == image["resized_to"], result["resized"])
    compared = 0
    for name in ("pixel_values", "chw", "vision_tower", "projector", "deepstack"):
        wanted = f"{image['case']}.{name}"
        if wanted not in expected["arrays"]:
            continue
        tolerance = 2e-5 if name in ("pixel_values", "chw") else expected["arrays"][wanted]["tol_abs"]
        compare(f"{case} {wanted}", read_array(result["arrays"], data, name),
                read_array(expected["arrays"], reference, wanted), tolerance)
        compared += 1
    expect(compared >= 3 - (len(files) > 1), f"{case}: only {compared} arrays were compared")
    positions = read_array(result["arrays"], data, "position_ids")
    ids = result["positions"]["ids"]
    expect(list(positions) == (sum(ids, []) if isinstance(ids[0], list) else ids), "positions in JSON and dump")


@check
def every_array_equals_the_reference():
    for case in FAMILIES:
        expected, reference = load_case(case)
        for image in expected["images"] + expected.get("videos", []):
            check_image(case, expected, reference, image)


@check
def positions_are_those_of_the_prompt():
    """In a prompt the picture's tokens stand at the first one's position plus these; text goes on at next."""
    for case in ("qwen2.5-vl", "qwen3-vl"):
        expected, reference = load_case(case)
        for image in expected["images"]:
            name = image["case"]
            ids = read_array(expected["arrays"], reference, f"{name}.input_ids")
            wanted = read_array(expected["arrays"], reference, f"{name}.position_ids")
            first = ids.index(expected["config"]["image_token_id"])
            positions = inspect(case, "--pixels-only", "--image", path_of(case, image["file"]),
                                *caps(expected))["positions"]
            count = image["n_image_tokens"]
            for axis in range(3):
                row = wanted[axis * len(ids):(axis + 1) * len(ids)]
                expect([p - row[first] for p in row[first:first + count]] == positions["ids"][axis], f"{case}: {axis}")
                expect(row[first + count] - row[first] == positions["next"], f"{case}: next")


@check
def odd_sizes_work_or_are_refused_with_a_sentence():
    for width, height in ((1, 1), (1, 4000), (4000, 1), (3000, 2000)):
        image = make_png(f"odd-{width}-{height}.png", width, height)
        for case in FAMILIES:
            args = ["inspect", "vision", "--mmproj", path_of(case, "mmproj.gguf"), "--image", image]
            if case.startswith("qwen") and max(width, height) == 4000:
                expect_failure(4, args, "200 times")
            else:
                result = inspect(case, "--image", image, *(["--pixels-only"] if width == 3000 else []))
                expect(result["n_tokens"] > 0 and result["source"] == {"width": width, "height": height}, result)
                expect(width == 3000 or 0 < result["projector"]["rms"] < 1000, f"{case}: {width} x {height}")
    over = inspect("qwen2.5-vl", "--pixels-only", "--image", image, "--max-pixels", "100000")
    expect(90000 < over["resized"]["width"] * over["resized"]["height"] <= 100000, over["resized"])


@check
def one_view_without_tiles():
    image = path_of("idefics3", "img0.png")
    result = inspect("idefics3", "--no-split", "--image", image)
    expect(result["tiles"] == {"rows": 1, "cols": 1, "overview": False} and result["n_tokens"] == 9, result["tiles"])


@check
def two_pictures_are_a_pair_of_frames():
    one, two = make_png("one.png", 112, 56, b"\0\0\0"), make_png("two.png", 112, 56, b"\xff\xff\xff")
    dump = os.path.join(HOME.name, "pair.bin")
    result = inspect("qwen3-vl", "--image", one, "--image", two, "--min-pixels", "1024", "--dump", dump)
    with open(dump, "rb") as file:
        patch = read_array(result["arrays"], file.read(), "pixel_values")[:16 * 16 * 6]
    expect(result["arrays"]["chw"]["shape"][0] == 2, "two frames")
    expect(set(patch[:256]) == {-1.0} and set(patch[256:512]) == {1.0}, "first black, then white")
    still = inspect("qwen3-vl", "--image", one, "--min-pixels", "1024")
    expect(still["n_tokens"] == result["n_tokens"], "a pair costs as much as a picture")
    expect(still["projector"] != result["projector"], "both frames are seen")
    expect_failure(2, ["inspect", "vision", "--mmproj", path_of("llava-1.5", "mmproj.gguf"), "--image", one, "--image",
                       two], "one by one")


def count_by_view(result):
    """[kept, merged] of each view; every place lies in the view, none is named twice."""
    counts = []
    for view in result["visionzip"]["views"]:
        places = [tuple(place) for place in view["kept"] + view["merged"]]
        expect(len(set(places)) == len(places), "a place is named twice")
        grid = result["grid"]
        expect(all(0 <= row < grid["rows"] and 0 <= col < grid["cols"] for row, col in places), places)
        counts.append([len(view["kept"]), len(view["merged"])])
    return counts


@check
def visionzip_shows_which_tokens_stay():
    for case in FAMILIES:
        image = ["--image", path_of(case, "img0.png")]
        result = inspect(case, *image, "--visionzip", "4,2")
        n_view, is_class = len(result["views"]), case == "llava-1.5"
        expect(result["visionzip"]["n_tokens"] == 6 * n_view, f"{case}: {result['visionzip']['n_tokens']}")
        expect(result["visionzip"]["class_token"] == is_class, f"{case}: class token")
        expect(count_by_view(result) == [[4 - is_class, 2]] * n_view, f"{case}: {count_by_view(result)}")
        expect(result["projector"]["shape"][0] == 6 * n_view, f"{case}: {result['projector']}")
        whole = inspect(case, *image, "--visionzip", "60000,1")
        per_view = whole["n_tokens"] // n_view
        expect(count_by_view(whole) == [[per_view, 0]] * n_view, f"{case}: a smaller view is left as it is")
        expect("visionzip" not in inspect(case, *image), "it is off by itself")
        tower = ["--mmproj", path_of(case, "mmproj.gguf")]
        code, out, err = run("inspect", "vision", *tower, *image, "--visionzip", "4,2")
        rows = [line.strip() for line in out.splitlines() if set(line.strip()) <= set("#+.") and line.strip()]
        expect(code == 0 and "".join(rows).count("#") == (4 - is_class) * n_view, f"{case}: {out} {err}")
        expect(len(rows) == result["grid"]["rows"] * n_view, f"{case}: {len(rows)} rows")


@check
def fastv_shows_which_tokens_go_on():
    """Half of the picture's tokens, those that the last token of the prompt looks at most, are in the later layers."""
    for case in ("idefics3", "llava-1.5", "qwen2.5-vl", "qwen3-vl"):
        model = ["--model", path_of(case, "model.gguf"), "--image", path_of(case, "img0.png")]
        for part, prompt in (("0.5", "What is it?"), ("0.25", "What is it?"), ("0", "?")):
            result = inspect(case, *model, "--prompt", prompt, "--fastv", f"1,{part}")
            kept, n = result["fastv"]["kept"] + result["fastv"]["kept_of_overview"], result["n_tokens"]
            expect(len(kept) == n - int(float(part) * n), f"{case}: {len(kept)} of {n} at {part}")
            expect(result["fastv"]["layer"] == 1 and result["fastv"]["part"] == float(part), result["fastv"])
        code, out, err = run("inspect", "vision", "--mmproj", path_of(case, "mmproj.gguf"), *model, "--fastv", "1,0.5")
        expect(code == 0 and "FastV" in out and out.count("#") >= n // 2, f"{case}: {out} {err}")
    tower = ["inspect", "vision", "--mmproj", path_of("qwen3-vl", "mmproj.gguf"),
             "--image", path_of("qwen3-vl", "img0.png")]
    expect_failure(2, tower + ["--fastv", "1,0.5"], "--model")
    model = ["--model", path_of("qwen3-vl", "model.gguf")]
    expect_failure(2, tower + ["--fastv", "1,0.5", "--pixels-only", *model], "--fastv")
    expect_failure(2, tower + ["--visionzip", "4,2", "--pixels-only"], "--visionzip")
    expect_failure(2, tower + ["--visionzip", "none"], "--visionzip")


@check
def wrong_input_ends_with_a_sentence():
    image, tower = path_of("llava-1.5", "img0.png"), path_of("llava-1.5", "mmproj.gguf")
    base = ["inspect", "vision"]
    expect_failure(2, base + ["--image", image], "--mmproj")
    expect_failure(2, base + ["--mmproj", tower], "--image")
    expect_failure(2, base + ["--mmproj", tower] + ["--image", image] * 3, "twice")
    expect_failure(2, base + ["--mmproj", tower, "--image", image, "--max-pixels", "-5"], "--max-pixels")
    expect_failure(2, base + ["--mmproj", tower, "--image", image, "--dump", image], "overwrite")
    expect_failure(1, base + ["--mmproj", MODEL, "--image", image], "no vision tower")
    expect_failure(4, base + ["--mmproj", tower, "--image", MODEL])
    expect_failure(1, base + ["--mmproj", tower, "--image", write("words.txt", b"no picture at all")], "no picture")
    with open(tower, "rb") as file:
        cut = write("cut-tower.gguf", file.read()[:200000])
    expect_failure(1, base + ["--mmproj", cut, "--image", image], "cut-tower.gguf")


if __name__ == "__main__":
    sys.exit(main())
