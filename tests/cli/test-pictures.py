#!/usr/bin/env python3
"""Pictures in the terminal: asked about, stored, read again without encoding, told what is kept.

Usage: test-pictures.py PROGRAM CASES.  Prints TAP.  Every check states a promise.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
import shutil
import struct
import subprocess
import sys
import zlib

from clilib import CASES, HOME, MODEL, check, expect, expect_failure, main, run, write

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "media"))
import hostileoffice  # noqa: E402
import hostilepdf  # noqa: E402

VIDEO = "plain.mp4"
FAMILIES = ("gemma3-vision", "idefics3", "llava-1.5", "qwen2-vl", "qwen2.5-vl", "qwen3-vl")
# Towers that come without a language model of their own, and another case's that fits.
BORROWED = {"gemma3-vision": "gemma3", "qwen2-vl": "qwen2.5-vl"}


def case(family, name):
    return os.path.join(CASES, family, name)


def model_of(family):
    """A language model with its tower in one folder."""
    if family not in BORROWED:
        return case(family, "model.gguf")
    folder = os.path.join(HOME.name, "pair-" + family)
    if not os.path.exists(folder):
        os.mkdir(folder)
        shutil.copy(case(BORROWED[family], "model.gguf"), folder)
        shutil.copy(case(family, "mmproj.gguf"), folder)
    return os.path.join(folder, "model.gguf")


def options(family):
    return ("--model", model_of(family), "--mode", "exact", "--threads", "1")


def ask(family, *more):
    code, out, err = run("ask", *options(family), "--json", "--max-tokens", "4", *more, "What is it?")
    expect(code == 0, err)
    return json.loads(out)


def find_least(family, *images, asked="1MiB"):
    """The target that the refusal of a smaller one names."""
    code, _, err = run("ask", *options(family), "--budget", asked, "--max-tokens", "2", *images, "?")
    expect(code == 3, f"{code} {err}")
    return err.rsplit("at least ", 1)[1].split(" MiB")[0] + "MiB"


@check
def every_family_answers_about_a_picture():
    """The tower beside the model is found; the picture's tokens are counted as a picture's."""
    for family in FAMILIES:
        blind = ask(family, "--mmproj", "none")
        seen = ask(family, "--image", case(family, "img0.png"))
        memory = seen["memory"]
        expect(memory["pictures_encoded"] == 1 and len(memory["pictures"]) == 1, f"{family}: {memory}")
        picture = memory["pictures"][0]
        expect(picture["turn"] == 1 and picture["name"] == "img0.png", str(picture))
        expect(seen["prompt_tokens"] >= blind["prompt_tokens"] + picture["tokens"], family)
        expect(memory["eyes_bytes"] > 0 and blind["memory"]["eyes_bytes"] == 0, family)
        expect(memory["entries_by_modality"]["image"] == picture["entries"], family)
        # Beside the target: pixels as they are decoded (RGBA) and laid on white (RGB).
        width, height = struct.unpack(">II", open(case(family, "img0.png"), "rb").read()[16:24])
        expect(memory["pixel_peak_bytes"] == 7 * width * height and memory["pixel_bytes"] == 0, f"{family}: {memory}")
        expect(blind["memory"]["pixel_peak_bytes"] == 0, family)
    code, _, err = run("ask", *options("qwen3-vl"), "--max-tokens", "2", "--image", case("qwen3-vl", "img0.png"), "?")
    expect(code == 0 and " pixels, " in err and " KiB at most" in err, err)


@check
def a_llava_file_without_a_chat_format_is_asked_as_vicuna():
    """Converted LLaVA files hold none; ChatML, which they never saw, costs more tokens and sense."""
    data = open(case("llava-1.5", "model.gguf"), "rb").read()
    path = write("no-format.gguf", data.replace(b"tokenizer.chat_template", b"tokenizer.chat_templatX"))
    args = ("ask", "--model", path, "--mode", "exact", "--threads", "1", "--json", "--max-tokens", "4")
    code, out, err = run(*args, "--mmproj", case("llava-1.5", "mmproj.gguf"), "--image",
                         case("llava-1.5", "img0.png"), "What is it?")
    expect(code == 0 and "Vicuna" in err and "ChatML" not in err, f"{code} {err}")
    code, blind, err = run(*args, "--mmproj", "none", "What is it?")
    expect(code == 0 and "ChatML" in err and "Vicuna" not in err, f"{code} {err}")
    code, seen, err = run(*args, "--mmproj", case("llava-1.5", "mmproj.gguf"), "What is it?")
    expect(json.loads(seen)["prompt_tokens"] != json.loads(blind)["prompt_tokens"], "the frame is another one")


@check
def two_pictures_stand_in_one_message():
    for family in FAMILIES:
        memory = ask(family, "--image", case(family, "img0.png"), "--image", case(family, "img1.png"))["memory"]
        numbers = [(p["turn"], p["picture"], p["name"]) for p in memory["pictures"]]
        expect(numbers == [(1, 1, "img0.png"), (1, 2, "img1.png")], f"{family}: {numbers}")


@check
def without_a_session_a_tight_target_encodes_each_picture_once():
    """Nothing is kept on the disk then, and memory has room for the embeddings of one picture only."""
    names = [item for i in range(2) for item in ("--image", case("qwen3-vl", f"img{i}.png"))]
    code, out, err = run("ask", *options("qwen3-vl"), "--json", "--max-tokens", "2", "--budget",
                         find_least("qwen3-vl", *names), *names, "Which?")
    expect(code == 0, err)
    memory = json.loads(out)["memory"]
    expect(memory["pictures_encoded"] == 2, f"{memory['pictures_encoded']} encoded")


@check
def one_refusal_names_a_target_that_works():
    """For all that is asked, its largest picture too; from far below, and from where text alone would work."""
    for family in FAMILIES:
        images = [item for i in range(2) for item in ("--image", case(family, f"img{i}.png"))]
        least = find_least(family, *images)
        text = find_least(family)
        expect(float(text[:-3]) < float(least[:-3]), f"{family}: {text} {least}")
        for budget in (least, find_least(family, *images, asked=text)):
            code, _, err = run("ask", *options(family), "--max-tokens", "2", "--budget", budget, *images, "?")
            expect(code == 0, f"{family} at {budget}: {err}")
        code, _, err = run("ask", *options(family), "--max-tokens", "2", "--budget", text, "?")
        expect(code == 0, f"{family} at {text}: {err}")
    code, _, err = run("ask", *options("qwen3-vl"), "--budget", "40KiB", "?")
    expect(code == 3 and "40.0 KiB" in err, err)


@check
def documents_are_looked_at_without_a_session_as_well():
    """Pictures where they stand, pages without text; --pages decides for all of them, stored or not."""
    letter = write("live.docx", hostileoffice.rich_docx())
    scan = write("live.pdf", hostilepdf.scanned("Typed words", "SCANNED LINES"))
    for where in ((), ("--session", "new")):
        tokens = {}
        for how, n_letter, n_scan in ((None, 2, 1), ("text", 0, 0), ("image", 2, 2), ("both", 2, 2)):
            for path, want in ((letter, n_letter), (scan, n_scan)):
                memory = ask("idefics3", *where, "--attach", path, *(("--pages", how) if how else ()))["memory"]
                expect(len(memory["pictures"]) == want, f"{where} {how} {path}: {memory['pictures']}")
                tokens[how, path] = memory["tokens_seen"]
        expect(tokens["text", scan] < tokens[None, scan] < tokens["image", scan] < tokens["both", scan], f"{tokens}")
    code, _, err = run("ask", *options("qwen3-vl"), "--max-tokens", "2", "--attach", scan, "?")
    expect(code == 0 and "live.pdf: 1 of 2 pages hold no text" in err and "looked at" in err, err)
    code, _, err = run("ask", *options("qwen3-vl"), "--max-tokens", "2", "--ocr", "--attach", letter, "?")
    expect(code == 0 and "--ocr recognises words only in a stored session: add --session new" in err, err)
    expect_failure(2, ("ask", *options("qwen3-vl"), "--pages", "all", "--attach", scan, "?"), "--pages")


@check
def pictures_beside_the_text_of_pages_are_pointed_out_once():
    """To a model with eyes that gets these pages as text; a mark on a page is no picture."""
    path, again = (write(f"report{i}.pdf", hostilepdf.illustrated(300)) for i in (1, 2))
    mark = write("mark.pdf", hostilepdf.illustrated(40))
    for where in ((), ("--session", "new")):
        begin = ("ask", *options("qwen3-vl"), "--max-tokens", "2", *where, "--attach")
        _, _, err = run(*begin, path, "--attach", again, "?")
        expect(err.count("note: report1.pdf: pages with text also hold pictures") == 1 and
               err.count("--pages both") == 1, f"{where} {err}")
        for more in ((path, "--pages", "both"), (path, "--pages", "text"), (path, "--mmproj", "none"), (mark,)):
            _, _, err = run(*begin, *more, "?")
            expect("also hold pictures" not in err, f"{where} {more} {err}")


@check
def frames_of_a_video_are_taken_as_asked_for():
    """By number, by time and by scene; 3 s of 10 pictures a second, and a film of 3 scenes."""
    subprocess.run([os.environ["KS_MAKE_VIDEOS"], HOME.name], check=True)
    plain, scenes = os.path.join(HOME.name, VIDEO), os.path.join(HOME.name, "scenes.mp4")
    for where in ((), ("--session", "new")):
        for more, want in ((("--frames", "2"), 2), (("--every", "1"), 3), (("--every", "0.5", "--frames", "4"), 4)):
            n = len(ask("llava-1.5", *where, "--attach", plain, *more)["memory"]["pictures"])
            expect(n == want, f"{where} {more}: {n}")
        by_scene = len(ask("llava-1.5", *where, "--attach", scenes, "--scenes")["memory"]["pictures"])
        expect(1 < by_scene < 8, f"{by_scene} scenes")
    for wrong in (("--every", "0"), ("--every", "nan"), ("--every", "1", "--scenes")):
        expect_failure(2, ("ask", *options("llava-1.5"), "--attach", plain, *wrong, "?"), "--every")


@check
def frames_of_several_sizes_in_one_video_are_each_seen_in_their_own():
    """Ten frames in pairs; the second half is larger, and the pair on the border takes its first frame's size."""
    subprocess.run([os.environ["KS_MAKE_VIDEOS"], HOME.name], check=True)
    grows = os.path.join(HOME.name, "grows.mkv")
    for where in ((), ("--session", "new")):
        begin = ("qwen2-vl", *where, "--attach", grows, "--frames", "10", "--keep-everything")
        told = [row["tokens"] for row in ask(*begin)["memory"]["pictures"]]
        expect(len(told) == 5 and told == 3 * [told[0]] + 2 * [told[4]] and told[0] < told[4], f"{where} {told}")
        capped = [row["tokens"] for row in ask(*begin, "--max-pixels", "12544")["memory"]["pictures"]]
        expect(capped[:3] == told[:3] and capped[4] < told[4], f"{where} {told} {capped}")


@check
def what_has_no_effect_or_is_the_wrong_file_is_told():
    path = case("idefics3", "img0.png")
    _, _, err = run("ask", *options("idefics3"), "--max-tokens", "2", "--image", path, "--fastv", "99,0.5", "?")
    expect("note: FastV from layer 99 on has no effect: this model has" in err, err)
    expect_failure(4, ("ask", "--model", case("idefics3", "mmproj.gguf"), "?"), "vision part of a model", "--mmproj")


@check
def limits_of_pixels_are_checked_and_told_where_they_do_nothing():
    for option in ("--min-pixels", "--max-pixels"):
        for wrong in ("many", "0", "-5", "1.5", "2000000000", ""):
            expect_failure(2, ("ask", *options("qwen3-vl"), option, wrong, "?"), f"{option} needs a number of pixels",
                           f"not '{wrong}'")
            expect_failure(2, ("inspect", "vision", "--mmproj", case("qwen3-vl", "mmproj.gguf"), "--image",
                               case("qwen3-vl", "img0.png"), option, wrong), f"{option} needs a number of pixels")
    expect_failure(2, ("ask", *options("qwen3-vl"), "--min-pixels", "20000", "--max-pixels", "10000", "?"),
                   "--min-pixels must not be more than --max-pixels")
    short = ("--max-tokens", "2", "--max-pixels", "20000", "?")
    for args, why in ((("--model", MODEL), "this model has no eyes"), (options("idefics3"), "in sizes of its own"),
                      (options("qwen3-vl"), None)):
        for where in ((), ("--session", "new")):
            code, _, err = run("ask", *args, *where, *short)
            expect(code == 0 and err.count("have no effect") == (why is not None), f"{args} {err}")
            expect(why is None or why in err, err)


@check
def a_target_of_the_session_itself_is_named():
    """With another model as well, which it may be too small for."""
    image = case("qwen3-vl", "img0.png")
    session = str(talk("new", "qwen3-vl", image, more=("--kv-budget", "2MiB"))["session"]["id"])
    command = ("memory", *options("qwen3-vl"), "--session", session)
    code, out, err = run(*command)
    expect(code == 0 and "the memory target is the session's own" in out, f"{out} {err}")
    expect(json.loads(run(*command, "--json")[1])["own_target"] is True, "own_target")
    code, out, _ = run(*command, "--kv-budget", "3MiB")
    expect(code == 0 and "session's own" not in out, out)
    expect(json.loads(run(*command, "--kv-budget", "3MiB", "--json")[1])["own_target"] is False, "own_target")
    session = str(talk("new", "qwen3-vl", image)["session"]["id"])
    code, out, _ = run("memory", *options("qwen3-vl"), "--session", session)
    expect(code == 0 and "session's own" not in out, out)


@check
def what_is_changed_in_a_picture_is_told():
    """A picture that ends early, without a session as well."""
    path = write("cut.png", open(case("qwen3-vl", "img0.png"), "rb").read()[:-600])
    code, _, err = run("ask", *options("qwen3-vl"), "--max-tokens", "2", "--image", path, "?")
    expect("note: cut.png: the picture ends early" in err, f"{code} {err}")


@check
def a_turn_that_failed_is_left_out_of_the_memory_of_a_session():
    """As it is when the session goes on: what was never read is no part of it."""
    code, _, err = run("ask", *options("qwen3-vl"), "--session", "new", "--budget", "2MiB", "--image",
                       case("qwen3-vl", "img0.png"), "?")
    expect(code == 3, f"{code} {err}")
    code, out, _ = run("sessions", "list", "--json")
    session = max(s["id"] for s in json.loads(out))
    talk(session, "qwen3-vl")
    code, out, err = run("memory", *options("qwen3-vl"), "--budget", "64MiB", "--session", str(session), "--json")
    told = json.loads(out)
    expect(code == 0 and len(told["turns"]) == 1 and told["memory"]["pictures"] == [], out)
    expect(told["turns"][0]["turn"] == 2, "numbered among all turns")
    code, out, _ = run("sessions", "show", "--json", str(session))
    expect([m["turn"] for m in json.loads(out)["transcript"]] == [1, 1, 2, 2], out)
    code, out, _ = run("sessions", "show", str(session))
    expect("[Question 2, " in out and "[Answer 2, " in out, out)


@check
def memory_tells_where_in_a_picture_each_entry_lies_that_is_left():
    """Layer, head, row and column, as many as are counted; a document's pictures are called so."""
    path = write("places.docx", hostileoffice.rich_docx())
    session = talk("new", "qwen3-vl", case("qwen3-vl", "img0.png"), more=("--attach", path))["session"]["id"]
    command = ("memory", *options("qwen3-vl"), "--entries", "40", "--session", str(session), "--patches")
    code, out, err = run(*command, "--json")
    expect(code == 0, err)
    for row in json.loads(out)["memory"]["pictures"]:
        patches = {tuple(entry) for entry in row["patches"]}
        expect(row["share"] < 1 and len(patches) == len(row["patches"]) == row["entries"], str(row)[:300])
        expect(row["rows"] * row["columns"] == row["tokens"], str(row)[:300])
        expect(all(r < row["rows"] and c < row["columns"] for _, _, r, c in patches), str(row)[:300])
    code, out, err = run(*command)
    expect(code == 0 and "places.docx, picture 1\n" in out and "page" not in out, out[:2000])
    expect(sum(line.count(",") - 3 for line in out.splitlines() if line.startswith("    picture: layer "))
           == sum(row["entries"] for row in json.loads(run(*command, "--json")[1])["memory"]["pictures"]), out[:2000])


@check
def an_attached_picture_is_seen_as_well():
    memory = ask("qwen3-vl", "--attach", case("qwen3-vl", "img1.png"))["memory"]
    expect(len(memory["pictures"]) == 1, str(memory))


@check
def visionzip_leaves_as_many_tokens_as_asked_for():
    """Of every view; the answer's prompt is shorter by what is left out, and a budget counts what is there."""
    for family, views in (("llava-1.5", 1), ("qwen3-vl", 1), ("idefics3", None)):
        image = ("--image", case(family, "img0.png"))
        whole, zipped = ask(family, *image), ask(family, *image, "--visionzip", "3,2")
        tokens = [answer["memory"]["pictures"][0]["tokens"] for answer in (whole, zipped)]
        expect(tokens[1] % 5 == 0 and 5 <= tokens[1] < tokens[0] and views in (None, tokens[1] // 5), f"{tokens}")
        expect(whole["prompt_tokens"] - zipped["prompt_tokens"] == tokens[0] - tokens[1], f"{family} {zipped}")
        expect(ask(family, *image, "--visionzip", "60000,1")["memory"]["pictures"][0]["tokens"] == tokens[0], family)
    image = case("qwen3-vl", "img0.png")
    for wrong in ("0,0.5", "2", "2,1.5", "2,-1", "2,nan", "2,0.5,1", "x,y", "2,", ""):
        expect_failure(2, ["ask", *options("qwen3-vl"), "--fastv", wrong, "--image", image, "?"], "--fastv")
    for wrong in ("5", "0,3", "3,-1", "3,2,1", "x,y", ""):
        expect_failure(2, ["ask", *options("qwen3-vl"), "--visionzip", wrong, "--image", image, "?"], "--visionzip")


@check
def fastv_leaves_fewer_entries_in_later_layers():
    """Three layers; behind the first half of the picture's tokens is left out.  With VisionZip it halves the rest."""
    for family in ("llava-1.5", "qwen3-vl"):
        image = ("--image", case(family, "img0.png"), "--keep-everything")
        for zip_options in ((), ("--visionzip", "4,4")):
            whole, left = ask(family, *image, *zip_options), ask(family, *image, *zip_options, "--fastv", "1,0.5")
            entries = [answer["memory"]["pictures"][0]["entries"] for answer in (whole, left)]
            tokens = whole["memory"]["pictures"][0]["tokens"]
            left_out = 2 * (tokens // 2) * (entries[0] // 3 // tokens)  # in two of three layers, by streams of a layer
            expect(entries[1] == entries[0] - left_out, f"{family} {entries}")
            expect(whole["prompt_tokens"] == left["prompt_tokens"], family)


@check
def a_blind_model_says_what_to_do():
    expect_failure(4, ("ask", "--model", MODEL, "--image", case("qwen3-vl", "img0.png"), "?"), "--mmproj")
    expect_failure(4, ("ask", *options("qwen3-vl"), "--mmproj", "none", "--image",
                       case("qwen3-vl", "img0.png"), "?"), "--mmproj")


@check
def eyes_of_another_family_are_refused():
    expect_failure(4, ("ask", *options("qwen3-vl"), "--mmproj", case("llava-1.5", "mmproj.gguf"), "--image",
                       case("qwen3-vl", "img0.png"), "?"), "vision file")


def png(width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress((b"\0" + b"\x80" * width) * height)) + chunk(b"IEND", b""))


@check
def a_picture_that_these_eyes_cannot_take_is_not_supported():
    """Which is no wrong option, stored or not."""
    path = write("narrow.png", png(4000, 1))
    for where in ((), ("--session", "new")):
        expect_failure(4, ("ask", *options("qwen3-vl"), *where, "--image", path, "?"), "narrow")


@check
def a_large_picture_is_told_of_before_it_is_looked_at():
    """Its tokens, what the model was trained for, and what lowers them; nothing of a small one.  The file that is
    missing ends the command before the model is asked anything."""
    large, small = write("large.png", png(2000, 1800)), write("small.png", png(300, 200))
    for where in ((), ("--session", "new")):
        _, _, err = run("ask", *options("qwen2.5-vl"), *where, "--image", small, "--image", large, "--image",
                        "missing.png", "?")
        lines = [line for line in err.splitlines() if " takes " in line]
        expect(len(lines) == 1, err)
        n_token = int(lines[0].split("large.png takes ", 1)[1].split(" tokens, more than the 4096 this model was "
                                                                     "trained for: --max-pixels lowers it")[0])
        plan = run("inspect", "vision", "--mmproj", case("qwen2.5-vl", "mmproj.gguf"), "--image", large,
                   "--pixels-only", "--json")
        expect(json.loads(plan[1])["n_tokens"] == n_token, f"{n_token} {plan}")
        _, _, err = run("ask", *options("qwen2.5-vl"), *where, "--max-pixels", "200000", "--image", large, "--image",
                        "missing.png", "?")
        expect(" takes " not in err, err)


@check
def what_is_no_picture_is_refused():
    path = os.path.join(HOME.name, "words.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write("only words")
    expect_failure(1, ("ask", *options("qwen3-vl"), "--image", path, "?"), "words.txt", "no picture")


@check
def pixel_caps_change_the_cost():
    small = ask("qwen3-vl", "--image", case("qwen3-vl", "img0.png"), "--min-pixels", "1024", "--max-pixels", "16384")
    large = ask("qwen3-vl", "--image", case("qwen3-vl", "img0.png"))
    expect(small["memory"]["pictures"][0]["tokens"] < large["memory"]["pictures"][0]["tokens"], "caps")
    expect(small["memory"]["pictures"][0]["tokens"] <= 16384 // (32 * 32), str(small["memory"]["pictures"]))


def talk(session, family, *images, more=()):
    args = [item for image in images for item in ("--image", image)]
    code, out, err = run("ask", *options(family), "--session", str(session), "--json", "--max-tokens", "3", *args,
                         *more, "And this?")
    expect(code == 0, err)
    return json.loads(out)


@check
def a_session_encodes_each_picture_once():
    """Another run of the program finds what the first one made, also where no state of the session is kept."""
    first = talk("new", "qwen2.5-vl", case("qwen2.5-vl", "img0.png"))
    session = first["session"]["id"]
    expect(first["memory"]["pictures_encoded"] == 1, str(first["memory"]))
    clear("snapshots")
    second = talk(session, "qwen2.5-vl", case("qwen2.5-vl", "img1.png"))
    expect(second["memory"]["pictures_encoded"] == 1, str(second["memory"]))
    expect(second["memory"]["pictures_from_disk"] == 1, str(second["memory"]))
    third = talk(session, "qwen2.5-vl", case("qwen2.5-vl", "img0.png"))
    expect(third["memory"]["pictures_encoded"] == 0, str(third["memory"]))
    expect(third["memory"]["pictures_from_disk"] == 1, f"the others' state is kept: {third['memory']}")
    code, out, err = run("memory", *options("qwen2.5-vl"), "--session", str(session), "--json")
    expect(code == 0, err)
    told = json.loads(out)
    expect(told["memory"]["pictures_encoded"] == 0, out)
    expect([p["turn"] for p in told["memory"]["pictures"]] == [1, 2, 3], out)
    expect(len(told["turns"]) == 3 and all(0 < t["share"] <= 1 for t in told["turns"]), out)


@check
def what_was_made_of_a_picture_goes_with_its_session():
    first = talk("new", "idefics3", case("idefics3", "img0.png"))
    folder = os.path.join(HOME.name, "data", "keepsake", "embeddings")
    before = set(os.listdir(folder))
    code, _, err = run("sessions", "delete", "--yes", str(first["session"]["id"]))
    expect(code == 0, err)
    expect(len(set(os.listdir(folder))) < len(before), "files stay")


@check
def thirty_pictures_fit_the_smallest_target():
    """At the smallest target that takes a picture: never over it, none encoded twice, turn 31 answers, and memory
    tells what is left of each."""
    family = "qwen3-vl"
    clear("embeddings")  # of other checks: the first picture has to be encoded
    budget = find_least(family, "--image", case(family, "img0.png"))
    code, out, err = run("ask", *options(family), "--session", "new", "--json", "--max-tokens", "2", "--budget", budget,
                         "--image", case(family, "img0.png"), "?")
    expect(code == 0, err)
    lines = [f"/image {case(family, f'img{i % 2}.png')}\n" f"number {i}\n" for i in range(1, 30)] + ["And the first?\n"]
    session = json.loads(out)["session"]["id"]
    code, out, err = run("chat", *options(family), "--session", str(session), "--json", "--max-tokens", "2", "--budget",
                         budget, stdin="".join(lines).encode())
    expect(code == 0, err)
    answers = [json.loads(text) for text in out.replace("}\n{", "}\0{").split("\0")]
    expect(len(answers) == 30, f"{len(answers)} answers")
    for answer in answers:
        expect(answer["memory"]["total_bytes"] <= float(budget[:-3]) * 1048576, f"{answer['memory']} > {budget}")
    last = answers[-1]
    expect(last["answer_tokens"] > 0, "turn 31")
    expect(last["memory"]["pictures_encoded"] == 1, f"{last['memory']['pictures_encoded']} encoded")
    expect(len(last["memory"]["pictures"]) == 30 and last["memory"]["entries_evicted"] > 0, "pictures")
    code, out, err = run("memory", *options(family), "--budget", budget, "--session", str(session))
    expect(code == 0, err)
    rows = [line for line in out.splitlines() if line.startswith("  picture ")]
    expect(len(rows) == 30 and all("% kept" in row for row in rows), out)
    expect(sum(line.startswith("turn ") for line in out.splitlines()) == 31, out)
    # What it tells is what the conversation had: nothing is encoded, and still the same room is left.
    code, out, err = run("memory", *options(family), "--budget", budget, "--session", str(session), "--json")
    told = json.loads(out)["memory"]
    expect(code == 0 and told["pictures_encoded"] == 0, err)
    expect(told["kv_budget_bytes"] == last["memory"]["kv_budget_bytes"], f"{told} {last['memory']}")
    had, has = (m["entries"] / m["entries_seen"] for m in (last["memory"], told))
    expect(abs(had - has) < 0.02, f"{had} kept, {has} told")


@check
def a_blind_model_in_a_session_with_pictures_says_so_once():
    """Also when nothing is attached now, and when memory reads the session."""
    session = talk("new", "qwen3-vl", case("qwen3-vl", "img0.png"), case("qwen3-vl", "img1.png"))["session"]["id"]
    for command in (("ask", "--max-tokens", "2", "And now?"), ("memory",)):
        code, _, err = run(command[0], "--model", MODEL, "--session", str(session), *command[1:])
        expect(code == 0 and err.count("cannot see pictures") == 1, f"{command}: {code} {err}")
    code, _, err = run("memory", *options("qwen3-vl"), "--session", str(session))
    expect(code == 0 and "cannot see pictures" not in err, err)


def clear(folder):
    for top, _, files in os.walk(os.path.join(HOME.name, "data", "keepsake", folder)):
        for name in files:
            os.remove(os.path.join(top, name))


@check
def a_session_goes_on_without_files_that_are_gone():
    """Each is named once, with what to do; what was made of a picture is enough for it to be seen."""
    words = write("words.txt", b"The key lies under the mat.")
    first = talk("new", "qwen3-vl", case("qwen3-vl", "img0.png"), more=("--attach", words))
    command = ("ask", *options("qwen3-vl"), "--session", str(first["session"]["id"]), "--json", "--max-tokens", "2")
    clear("blobs")
    clear("snapshots")
    code, out, err = run(*command, "And now?")
    expect(code == 0 and len(json.loads(out)["memory"]["pictures"]) == 1, f"{code} {err}")
    expect('"words.txt"' in err and "attach it again" in err and "img0.png" not in err, err)
    clear("embeddings")
    clear("snapshots")
    code, out, err = run(*command, "And then?")
    expect(code == 0 and json.loads(out)["memory"]["pictures"] == [], f"{code} {err}")
    told = [line for line in err.splitlines() if "attach it again" in line]
    expect(len(told) == 2 and sum('"img0.png"' in line for line in told) == 1 and "blobs" not in err, err)
    clear("snapshots")
    code, out, err = run("memory", *options("qwen3-vl"), "--session", str(first["session"]["id"]), "--json")
    expect(code == 0 and len(json.loads(out)["turns"]) == 3 and '"img0.png"' in err, f"{code} {err}")


@check
def a_video_is_seen_by_its_frames():
    """Two by two where the model takes pairs, one by one elsewhere; a session reads them again without encoding."""
    subprocess.run([os.environ["KS_MAKE_VIDEOS"], HOME.name], check=True)
    video = os.path.join(HOME.name, VIDEO)
    for family, want in (("qwen2.5-vl", [1, 3]), ("llava-1.5", [1, 2, 3, 4])):
        memory = ask(family, "--attach", video, "--frames", "4")["memory"]
        expect([p["frame"] for p in memory["pictures"]] == want, f"{family}: {memory['pictures']}")
        expect(memory["pictures_encoded"] == len(want), family)
    first = talk("new", "qwen3-vl", more=("--attach", video, "--frames", "4"))
    expect([p["frame"] for p in first["memory"]["pictures"]] == [1, 3], str(first["memory"]["pictures"]))
    clear("snapshots")
    second = talk(first["session"]["id"], "qwen3-vl")
    expect(second["memory"]["pictures_encoded"] == 0 and second["memory"]["pictures_from_disk"] == 2,
           str(second["memory"]))


@check
def the_sound_of_a_video_is_said_to_be_unheard():
    """Once for each video that has one, stored or not; a silent one gets no such word."""
    subprocess.run([os.environ["KS_MAKE_VIDEOS"], HOME.name], check=True)
    loud, silent = os.path.join(HOME.name, "sound.mp4"), os.path.join(HOME.name, VIDEO)
    for where in ((), ("--session", "new")):
        code, _, err = run("ask", *options("qwen3-vl"), *where, "--max-tokens", "2", "--frames", "2", "--image", loud,
                           "--image", silent, "?")
        told = [line for line in err.splitlines() if "not heard" in line]
        expect(code == 0 and len(told) == 1 and "sound.mp4" in told[0], f"{where}: {code} {err}")


@check
def a_document_is_seen_with_its_pictures():
    """Each where it stands and once; a page of a PDF that has no text is a picture."""
    path = write("letter.docx", hostileoffice.rich_docx())
    seen = talk("new", "idefics3", more=("--attach", path))["memory"]
    expect([p["document_picture"] for p in seen["pictures"]] == [1, 2], str(seen["pictures"]))
    blind = talk("new", "idefics3", more=("--attach", path, "--mmproj", "none"))["memory"]
    expect(blind["pictures"] == [] and blind["tokens_seen"] > 50, str(blind))
    path = write("scan.pdf", hostilepdf.scanned("Typed words", "SCANNED LINES"))
    seen = talk("new", "idefics3", more=("--attach", path))["memory"]
    expect([p["page"] for p in seen["pictures"]] == [2], str(seen["pictures"]))


@check
def a_folder_is_attached_file_by_file():
    folder = os.path.join(HOME.name, "folder")
    os.makedirs(folder)
    shutil.copy(case("qwen3-vl", "img0.png"), folder)
    for name, data in (("a.txt", b"words"), ("b.bin", b"\0\1\2\3" * 50)):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)
    code, out, err = run("ask", *options("qwen3-vl"), "--json", "--max-tokens", "2", "--attach", folder, "?")
    expect(code == 0 and "b.bin is left out" in err and "a.txt is attached" in err, err)
    expect(len(json.loads(out)["memory"]["pictures"]) == 1, out)


@check
def models_tell_which_have_eyes():
    folder = os.path.join(HOME.name, "data", "keepsake", "models")
    os.makedirs(folder, exist_ok=True)
    shutil.copy(case("llava-1.5", "model.gguf"), os.path.join(folder, "sees.gguf"))
    shutil.copy(case("llava-1.5", "mmproj.gguf"), os.path.join(folder, "eyes.gguf"))
    code, out, err = run("models", "--json")
    expect(code == 0, err)
    models = json.loads(out)["models"]
    expect([os.path.basename(m["mmproj"]) for m in models] == ["eyes.gguf"], out)


if __name__ == "__main__":
    sys.exit(main())
