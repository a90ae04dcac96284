#!/usr/bin/env python3
"""keepsake-cli eval on tiny models: runs that go on, scores without a model, a judge's file out and in.

Usage: test-eval.py PROGRAM CASES.  All data are made up here.  Prints TAP.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from clilib import CASES, ENV, GATE, HOME, MODEL, PROGRAM, check, expect, expect_failure, main, run, write

TINY = ("--model", MODEL, "--gate", GATE, "--threads", "1")
EYES = os.path.join(CASES, "idefics3")


def path(name):
    return os.path.join(HOME.name, name)


def rows(name):
    with open(path(name), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    expect("run" in lines[0], "the first line is no header")
    return lines[0]["run"], lines[1:]


def done(*args):
    code, out, err = run("eval", *args)
    expect(code == 0, f"{args}: exit {code}: {err}")
    return out


@check
def a_run_holds_every_cell_and_goes_on():
    """Each policy, budget, question and sample once; again nothing more; another budget only adds."""
    args = ("run", "needle", "--lengths", "2000", "--samples", "2", "--policies", "full,streaming", "--max-new", "4",
            "--out", path("needle.jsonl"), *TINY)
    done(*args, "--entries", "16")
    header, first = rows("needle.jsonl")
    expect(len(first) == 2 * 2 * 2, f"{len(first)} rows")
    expect(len(header["model_hash"]) == 64 and header["bench"] == "needle", header)
    names = {(r["policy"], r["M"], r["question"], r["id"]) for r in first}
    expect(len(names) == 8, names)
    for row in first:
        expect(row["prompt_tokens"] + 128 <= 2000, row["prompt_tokens"])
        expect((row["M"] == 0) == (row["policy"] == "full"), row)
    done(*args, "--entries", "16")
    expect(rows("needle.jsonl")[1] == first, "rows were asked again")
    done(*args, "--entries", "16,24")
    expect(rows("needle.jsonl")[1][:8] == first and len(rows("needle.jsonl")[1]) == 12, "another budget")


@check
def a_file_of_another_run_is_refused():
    expect_failure(2, ("eval", "run", "needle", "--lengths", "2000", "--samples", "2", "--max-new", "5", "--out",
                       path("needle.jsonl"), *TINY), "max_new")


@check
def seeds_that_rows_cannot_hold_are_refused():
    """A seed of more than 53 bits would come back as another one, and its rows be asked again."""
    expect_failure(2, ("eval", "run", "needle", "--seeds", "9007199254740993", "--out", path("seed.jsonl"), *TINY),
                   "--seeds")


@check
def a_stopped_run_goes_on():
    """Ctrl-C ends with 130; what was asked stays; the same command finishes."""
    args = ["eval", "run", "turns", "--lengths", "3000", "--samples", "20", "--policies", "full,streaming",
            "--entries", "32", "--other-turns", "0", "--max-new", "4", "--out", path("turns.jsonl"), *TINY]
    program = subprocess.Popen([PROGRAM, *args], env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    for _ in range(600):
        time.sleep(0.05)
        if program.poll() is not None:
            break
        if os.path.exists(path("turns.jsonl")) and os.path.getsize(path("turns.jsonl")) > 3000:
            program.send_signal(signal.SIGINT)
            break
    program.communicate(timeout=60)
    code = program.returncode
    expect(code in (0, 130), f"exit {code}")
    before = rows("turns.jsonl")[1]
    if code == 130:
        expect(0 < len(before) < 240, len(before))
    code, _, err = run(*args)
    expect(code == 0, err)
    after = rows("turns.jsonl")[1]
    expect(len(after) == 240 and after[:len(before)] == before, f"{len(before)} then {len(after)}")


@check
def scores_need_no_model():
    """Means of rows that are written here, official and harness; JSON says the same as the rows."""
    cell = {"policy": "full", "M": 0}
    lines = [{"bench": "aime", "id": "1", "prediction": "\\boxed{7}", "expect": ["7"], **cell},
             {"bench": "aime", "id": "2", "prediction": "<think>8</think>9", "expect": ["9"], **cell},
             {"bench": "mathvision", "part": "counting/level 2", "id": "1", "prediction": "(B)", "expect": ["B"],
              "options": ["1", "2"], **cell}]
    name = write("mine.jsonl", "".join(json.dumps(line) + "\n" for line in lines).encode())
    official = json.loads(done("score", name, "--json", "--parts"))
    harness = json.loads(done("score", name, "--json", "--scorer", "harness"))
    def mean(result, bench, metric, part=""):
        found = [m for m in result["means"] if (m["bench"], m["metric"], m["part"]) == (bench, metric, part)]
        expect(len(found) == 1, f"{bench} {metric}: {found}")
        return found[0]["mean"]
    expect(mean(official, "aime", "exact") == 0.5, "official")
    expect(mean(harness, "aime", "exact") == 1, "harness")
    expect(mean(official, "mathvision", "accuracy", "*/level 2") == 1, "parts")
    expect("mathvision" in done("score", name), "text")
    expect_failure(2, ("eval", "score", name, "--scorer", "mine"), "--scorer")


@check
def mme_with_pictures():
    """The release folder, seen by a tiny model; missing subtasks are told, not counted as zero."""
    for i in range(2):
        folder = path("mme/count")
        os.makedirs(folder, exist_ok=True)
        shutil.copy(os.path.join(EYES, f"img{i}.png"), os.path.join(folder, f"{i}.png"))
        write(f"mme/count/{i}.txt", b"".join(b"Is it %d? Please answer yes or no.\t%s\n" % pair
                                             for pair in ((1, b"Yes"), (2, b"No"))))
    done("run", "mme", "--data", path("mme"), "--policies", "full,streaming", "--entries", "48", "--max-new", "2",
         "--template", "short", "--out", path("mme.jsonl"), "--model", os.path.join(EYES, "model.gguf"), "--mmproj",
         os.path.join(EYES, "mmproj.gguf"), "--threads", "1")
    header, lines = rows("mme.jsonl")
    expect(header["template"] == "short" and len(lines) == 8, lines)
    expect({line["group"] for line in lines} == {"count/0", "count/1"}, "groups")
    result = json.loads(done("score", path("mme.jsonl"), "--json"))
    expect("existence" in result["mme"][0]["problem"], result["mme"])
    expect_failure(4, ("eval", "run", "mme", "--data", path("mme"), "--policies", "full", "--out", path("blind.jsonl"),
                       *TINY), "no eyes")


@check
def answers_of_others_are_scored():
    """MME's result files with all fourteen subtasks, one of them alone, LLaVA's answers; what is none of it is told."""
    tasks = ("existence count position color posters celebrity scene landmark artwork OCR commonsense_reasoning "
             "numerical_calculation text_translation code_reasoning").split()
    os.makedirs(path("results"))
    for task in tasks:
        lines = (("1.png", "A?", "Yes", "yes, it is"), ("1.png", "B?", "No", "perhaps" if task == "OCR" else "no"))
        write(f"results/{task}.txt", "".join("\t".join(line) + "\n" for line in lines).encode())
    result = json.loads(done("score", path("results"), "--json"))
    expect(result["mme"][0]["perception"] == 1850 and result["mme"][0]["cognition"] == 800, result["mme"])
    expect("accuracy" in done("score", path("results/OCR.txt")), "one file")
    data = {"data": [{"question_id": 7, "image_id": "0f", "question": "What IS it?", "answers": ["a cat"] * 10}]}
    answer = {"question_id": "0f", "prompt": "what is it?\nOne word.", "text": "Cat.", "answer_id": "x"}
    theirs = write("theirs.jsonl", json.dumps(answer).encode() + b"\n")
    annotations = write("vqa.json", json.dumps(data).encode())
    result = json.loads(done("score", theirs, "--data", annotations, "--json"))
    expect([(m["bench"], m["policy"], m["mean"]) for m in result["means"]] == [("textvqa", "theirs", 1)], result)
    expect_failure(2, ("eval", "score", theirs), "--data")
    write("results/count.txt", "\t".join(("1.png", "A?", "Yes")).encode())
    expect_failure(1, ("eval", "score", path("results")), "line 1", "count.txt")
    expect_failure(1, ("eval", "score", HOME.name), "named by subtask")


@check
def mmdu_goes_to_a_judge_and_back():
    """Dialogues over turns; requests hold question, reference and answer; replies are summed up per cell."""
    data = [{"id": "d", "image": ["img0.png"], "conversations": [
        {"from": "user", "value": "<ImageHere>What is it?"}, {"from": "assistant", "value": "a reference one"},
        {"from": "user", "value": "And then?"}, {"from": "assistant", "value": "a reference two"}]}]
    name = write("bench.json", json.dumps(data).encode())
    args = ("run", "mmdu", "--data", name, "--pictures", EYES, "--policies", "full", "--max-new", "3", "--out",
            path("mmdu.jsonl"), "--model", os.path.join(EYES, "model.gguf"), "--mmproj",
            os.path.join(EYES, "mmproj.gguf"), "--threads", "1")
    done(*args)
    done(*args, "--forced")
    lines = rows("mmdu.jsonl")[1]
    expect([line["bench"] for line in lines] == ["mmdu"] * 2 + ["mmdu-forced"] * 2, lines)
    expect(lines[1]["turn"] == 1 and lines[1]["prompt_tokens"] < lines[0]["prompt_tokens"],
           "the first turn was read again")
    done("judge", path("mmdu.jsonl"), "--data", name, "--pictures", EYES, "--requests", path("ask.jsonl"))
    with open(path("ask.jsonl"), encoding="utf-8") as file:
        requests = [json.loads(line) for line in file]
    expect(len(requests) == 2, requests)
    for text in ("And then?", "a reference two", lines[1]["prediction"]):
        expect(text in requests[1]["prompt"], f"{text!r} is not in the request")
    expect(requests[0]["images"][0].endswith("img0.png"), requests[0]["images"])
    fields = ("Creativity", "Richness", "Visual Perception", "Logical Coherence", "Answer Accuracy",
              "Image Relationship Understanding", "Overall Score")
    reply = "Fine. " + str({field: 6 for field in fields})
    replies = write("told.jsonl", (json.dumps({"key": requests[0]["key"], "reply": reply}) + "\n").encode())
    result = json.loads(done("judge", path("mmdu.jsonl"), "--replies", replies, "--judge", "me", "--json"))
    overall = result["cells"][0]["fields"]["Overall Score"]
    expect(result["judge"] == "me" and overall == {"official": 60, "all": 30, "valid": 60}, overall)


@check
def what_is_wrong_is_told():
    expect_failure(2, ("eval", "run", "chess", "--out", path("x.jsonl")), "chess")
    expect_failure(2, ("eval", "run", "aime", "--out", path("x.jsonl")), "--data")
    expect_failure(2, ("eval", "run", "needle", *TINY), "--out")
    expect_failure(2, ("eval", "run", "needle", "--policies", "best", "--out", path("x.jsonl"), *TINY), "best")
    expect_failure(2, ("eval", "run", "needle", "--lengths", "12", "--out", path("y.jsonl"), *TINY), "too few")
    expect_failure(2, ("eval", "run", "needle", "--entries", "0", "--out", path("x.jsonl"), *TINY), "--entries")
    expect_failure(1, ("eval", "score", path("none.jsonl")), "none.jsonl")


if __name__ == "__main__":
    sys.exit(main())
