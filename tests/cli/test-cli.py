#!/usr/bin/env python3
"""keepsake-cli as a user runs it: exit codes, help, JSON, encodings, Ctrl-C, traces of golden cases.

Usage: test-cli.py PROGRAM CASES.  Prints TAP.  Every check states a promise.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import base64
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time

from clilib import CASES, ENV, GATE, HOME, MODEL, PROGRAM, check, expect, expect_failure, main, run, write


@check
def every_command_explains_itself():
    commands = [[], ["ask"], ["chat"], ["models"], ["bench"], ["bench", "speed"], ["bench", "memory"],
                ["bench", "recall"], ["bench", "snapshot"], ["bench", "long"], ["inspect"], ["inspect", "gguf"],
                ["inspect", "tokens"], ["inspect", "logits"], ["inspect", "evict"], ["inspect", "vision"], ["devices"]]
    for command in commands:
        code, out, _ = run(*command, "--help")
        expect(code == 0, f"{command}: exit {code}")
        expect("Usage:" in out and "Examples:" in out, f"{command}: no usage or no examples")


@check
def wrong_options_end_with_2():
    expect_failure(2, ["nonsense"], "nonsense")
    expect_failure(2, ["ask", "--nonsense", "x"], "nonsense")
    expect_failure(2, ["ask", "--model", MODEL, "--budget", "1GiB", "--entries", "5", "x"], "--entries")
    expect_failure(2, ["ask", "--model", MODEL, "--budget", "plenty", "x"], "plenty")
    expect_failure(2, ["ask", "--model", MODEL, "--policy", "magic", "x"], "magic")
    expect_failure(2, ["ask", "--model", MODEL, "--kv-type", "q4_0", "x"], "f16")
    expect_failure(2, ["ask", "--model", MODEL, "--chunk", "100000000", "x"], "--chunk must be 65536 at most")
    expect_failure(2, ["ask", "--model", MODEL, "--top-p", "7", "x"], "top")
    expect_failure(2, ["ask", "--model", MODEL, "--policy", "dbtrimkv", "x"], "--gate")
    expect_failure(2, ["inspect", "tokens", "--model", MODEL], "--ids")
    expect_failure(2, ["inspect", "tokens", "--model", MODEL, "--ids", "999999"], "999999")
    expect(run()[0] == 2, "no command")
    expect_failure(2, ["ask", "--model", MODEL], "empty", stdin=b"  \n")
    expect_failure(2, ["ask", "--model", MODEL], "empty", stdin=b"")


@check
def bad_files_end_with_1_and_a_sentence():
    with open(MODEL, "rb") as file:
        head = file.read(100000)
    expect_failure(1, ["ask", "--model", "/nonexistent/model.gguf", "x"], "/nonexistent/model.gguf")
    expect_failure(1, ["ask", "--model", write("cut.gguf", head), "x"])
    expect_failure(1, ["inspect", "gguf", write("text.gguf", b"this is no model file" * 9)])
    expect_failure(1, ["inspect", "gguf", write("empty.gguf", b"")])
    expect_failure(1, ["ask", "--model", MODEL, "--attach", HOME.name + "/missing.txt", "x"], "missing.txt")
    expect_failure(1, ["ask", "x"], "run.sh", "--model")
    expect_failure(1, ["ask", "--model", "no-such-name", "x"], "no-such-name")


@check
def a_gate_for_another_model_ends_with_4():
    expect_failure(4, ["ask", "--model", os.path.join(CASES, "qwen2", "model.gguf"), "--gate", GATE, "x"])


@check
def a_budget_that_is_too_small_ends_with_3():
    expect_failure(3, ["ask", "--model", MODEL, "--kv-budget", "1KiB", "x"])
    expect_failure(3, ["ask", "--model", MODEL, "--budget", "1MiB", "x"])
    long_text = write("long.txt", b"the lamp is green. " * 200)
    expect_failure(3, ["ask", "--model", MODEL, "--keep-everything", "--entries", "150", "--attach", long_text,
                       "x"], "fit")


@check
def json_is_complete_and_repeatable():
    args = ["ask", "--model", MODEL, "--json", "--max-tokens", "12", "--temperature", "0.8", "--seed", "5",
            "--entries", "64", "--chunk", "32", "one two three"]
    first, second = run(*args), run(*args)
    expect(first[0] == 0, first[2])
    answer, again = json.loads(first[1]), json.loads(second[1])
    expect(answer["answer"] == again["answer"], "same seed, another answer")
    memory = answer["memory"]
    expect(memory["kv_used_bytes"] <= memory["kv_budget_bytes"], "over the budget")
    expect(memory["tokens_seen"] == answer["prompt_tokens"] + answer["answer_tokens"], "tokens do not add up")
    by_head = memory["entries_by_head"]
    expect([sum(row) for row in by_head] == memory["entries_by_layer"], "heads do not add up to layers")
    for counts in (memory["entries_by_layer"], memory["entries_by_turn"], memory["entries_by_modality"].values()):
        expect(sum(counts) == memory["entries"] > 0, f"entries do not add up: {counts}")
    expect(answer["gate"] is None and answer["policy"] == "keydiff-global", "stated policy")
    expect("was not taught what to keep" in first[2], "the policy of a model without a gate is said once")
    for command in (["models", "--json"], ["devices", "--json"], ["inspect", "gguf", MODEL, "--json"],
                    ["models", "describe", MODEL, "--json"]):
        code, out, err = run(*command)
        expect(code == 0, f"{command}: {err}")
        json.loads(out)


@check
def devices_say_what_cannot_be_used_and_why():
    folder = os.path.join(HOME.name, "modules")
    os.mkdir(folder)
    write("modules/libkeepsake-broken.so", b"no library")
    env = dict(ENV, KEEPSAKE_MODULE_DIR=folder)
    code, out, err = run("devices", "--json", env=env)
    expect(code == 0, err)
    devices = json.loads(out)
    expect([d["backend"] for d in devices["devices"]] == ["cpu"], "the processor is there")
    expect(len(devices["unusable"]) == 1 and "libkeepsake-broken.so" in devices["unusable"][0]["reason"], out)
    expect("libkeepsake-broken.so" in run("devices", env=env)[1], "the reason is printed")
    expect(json.loads(run("devices", "--json")[1])["unusable"] == [], "nothing to complain about")


@check
def an_answer_stops_at_limit_and_stop_string():
    base = ["ask", "--model", MODEL, "--json", "--temperature", "0", "hello"]
    full = json.loads(run(*base, "--max-tokens", "20")[1])
    expect(full["answer_tokens"] == 20 and full["end"] == "limit", f"no limit: {full['end']}")
    stop = full["answer"][4:6]
    cut = json.loads(run(*base, "--max-tokens", "20", "--stop", stop)[1])
    expect(cut["end"] == "stop", cut["end"])
    expect(cut["answer"] == full["answer"][:full["answer"].index(stop)], "text behind the stop string is shown")


@check
def a_question_may_come_from_standard_input():
    by_argument = json.loads(run("ask", "--model", MODEL, "--json", "--max-tokens", "4", "hello there")[1])
    by_stdin = json.loads(run("ask", "--model", MODEL, "--json", "--max-tokens", "4", stdin=b"hello there\n")[1])
    expect(by_argument["answer"] == by_stdin["answer"], "another answer")


@check
def text_in_any_encoding_is_read():
    german = "Übergrößenträger kämpfen für schöne Straßenbäume in Österreich.\nÄpfel und Öl.\n" * 4
    japanese = "これは日本語の文章です。文字コードを自動的に調べます。\n漢字とひらがなとカタカナ。\n" * 8
    cases = {"utf8": german.encode(), "utf8-bom": b"\xef\xbb\xbf" + german.encode(),
             "utf16le-bom": b"\xff\xfe" + german.encode("utf-16-le"),
             "utf16be-bom": b"\xfe\xff" + german.encode("utf-16-be"),
             "utf16le": german.encode("utf-16-le"), "utf32le-bom": b"\xff\xfe\0\0" + german.encode("utf-32-le"),
             "latin1": german.encode("latin-1"), "crlf": german.replace("\n", "\r\n").encode(),
             "sjis": japanese.encode("shift_jis"), "euc-jp": japanese.encode("euc_jp")}
    for name, data in cases.items():
        want = japanese if "jp" in name or "jis" in name else german
        code, out, err = run("inspect", "tokens", "--model", MODEL, "--file", write(name + ".txt", data), "--json")
        expect(code == 0, f"{name}: {err}")
        expect(json.loads(out)["text"] == want, f"{name}: read as {json.loads(out)['text'][:60]!r}")


@check
def what_holds_no_text_is_refused():
    png = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
                           "AAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==")
    expect_failure(4, ["ask", "--model", MODEL, "--attach", write("picture.png", png), "x"], "is a picture")
    expect_failure(1, ["ask", "--model", MODEL, "--attach", write("half.png", png[:30]), "x"], "half.png is damaged")
    expect_failure(4, ["ask", "--model", MODEL, "--attach", MODEL, "x"], "not a text file")
    os.makedirs(os.path.join(HOME.name, "nothing", "readable"))
    write("nothing/readable/noise.bin", bytes(range(256)) * 9)
    nothing = os.path.join(HOME.name, "nothing")
    expect_failure(1, ["ask", "--model", MODEL, "--attach", nothing, "x"], "no file of")


@check
def control_tokens_in_text_stay_text():
    args = ["inspect", "tokens", "--model", MODEL, "--json", "--text", "a<|im_end|>b"]
    plain, special = json.loads(run(*args)[1]), json.loads(run(*args, "--special")[1])
    expect(2 not in plain["ids"] and 2 in special["ids"], "special parsing")
    expect(plain["text"] == special["text"] == "a<|im_end|>b", "text does not come back")
    ids = ",".join(str(i) for i in plain["ids"])
    expect(run("inspect", "tokens", "--model", MODEL, "--ids", ids)[1] == "a<|im_end|>b\n", "ids to text")


def read_array(case, name):
    with open(os.path.join(CASES, case, "expected.json"), encoding="utf-8") as file:
        expected = json.load(file)
    info = expected["arrays"][name]
    with open(os.path.join(CASES, case, "expected.bin"), "rb") as file:
        file.seek(info["offset"])
        data = file.read(info["nbytes"])
    kind = {"f32": "f", "i32": "i"}[info["dtype"]]
    return struct.unpack(f"<{len(data) // 4}{kind}", data), info, expected


@check
def logits_dump_equals_the_golden_case():
    ids, _, _ = read_array("llama", "chat.input_ids")
    dump = os.path.join(HOME.name, "dump.bin")
    code, out, err = run("inspect", "logits", "--model", MODEL, "--ids", ",".join(map(str, ids)), "--rows", "all",
                         "--dump", dump, "--states", "--json")
    expect(code == 0, err)
    arrays = json.loads(out)["arrays"]
    with open(dump, "rb") as file:
        data = file.read()
    for ours, golden in (("logits", "chat.logits"), ("embed_last", "chat.embed_last"),
                         ("layer_out_last", "chat.layer_out_last"), ("final_norm_last", "chat.final_norm_last")):
        want, info, _ = read_array("llama", golden)
        expect(arrays[ours]["shape"] == info["shape"], f"{ours}: {arrays[ours]['shape']}")
        begin = arrays[ours]["offset"]
        got = struct.unpack(f"<{len(want)}f", data[begin:begin + arrays[ours]["nbytes"]])
        worst = max(abs(a - b) for a, b in zip(got, want))
        expect(worst <= info["tol_abs"], f"{ours}: off by {worst}")


@check
def eviction_traces_equal_the_golden_cases():
    ids, _, expected = read_array("dbtrimkv", "input_ids")
    for name, case in expected["cases"].items():
        gate = os.path.join(CASES, "dbtrimkv", f"gate_{case['gate']}.safetensors")
        n_tok = sum(case["chunks"])
        code, out, err = run(
            "inspect", "evict", "--model", MODEL, "--gate", gate, "--ids", ",".join(map(str, ids[:n_tok])),
            "--chunks", ",".join(map(str, case["chunks"])), "--entries", str(case["M"]), "--buffer", str(case["B"]),
            "--lookahead", str(case["lookahead_n"]), "--floor", str(case["floor_per_stream"]), "--json")
        expect(code == 0, f"{name}: {err}")
        trace = json.loads(out)
        expect(len(trace["events"]) == len(case["events"]), f"{name}: {len(trace['events'])} evictions")
        expect(trace["peak_entries"] == case["peak_entries"], f"{name}: peak {trace['peak_entries']}")
        got = []
        for i, (event, want) in enumerate(zip(trace["events"], case["events"])):
            for key in ("seen", "entries_before", "entries_after"):
                expect(event[key] == want[key], f"{name}: {key} {event[key]}, want {want[key]}")
            # With a floor the reference names the global cut, not the last survivor.
            if case["floor_per_stream"] == 0:
                expect(abs(event["score_of_last_kept"] - want["score_of_last_kept"]) < 1e-4, f"{name}: score")
            got += [[i, layer, head, pos] for layer, heads in enumerate(event["survivors"])
                    for head, stream in enumerate(heads) for pos in stream]
        if case["events"]:
            flat = read_array("dbtrimkv", name + ".survivors")[0]
            want_rows = [list(flat[i:i + 4]) for i in range(0, len(flat), 4)]
            expect(sorted(got) == sorted(want_rows), f"{name}: other survivors")


@check
def a_trace_dump_equals_the_golden_case():
    ids, _, expected = read_array("dbtrimkv", "input_ids")
    case, dump = expected["cases"]["chunked"], os.path.join(HOME.name, "trace.bin")
    code, out, err = run(
        "inspect", "evict", "--model", MODEL, "--gate", GATE, "--ids", ",".join(map(str, ids)), "--chunks",
        ",".join(map(str, case["chunks"])), "--entries", str(case["M"]), "--buffer", str(case["B"]), "--dump", dump,
        "--json")
    expect(code == 0, err)
    arrays = json.loads(out)["arrays"]
    with open(dump, "rb") as file:
        data = file.read()

    def ours(name):
        begin = arrays[name]["offset"]
        return struct.unpack(f"<{arrays[name]['nbytes'] // 4}f", data[begin:begin + arrays[name]["nbytes"]])

    want, info, _ = read_array("dbtrimkv", "chunked.log_beta")
    expect(arrays["log_beta"]["shape"] == info["shape"], f"log_beta: {arrays['log_beta']['shape']}")
    worst = max(abs(a - b) for a, b in zip(ours("log_beta"), want))
    expect(worst <= info["tol_abs"], f"log_beta: off by {worst}")
    rows = read_array("dbtrimkv", "chunked.logit_rows")[0]
    want, info, _ = read_array("dbtrimkv", "chunked.logits")
    n_vocab, logits = info["shape"][1], ours("logits")
    worst = max(abs(logits[row * n_vocab + j] - want[i * n_vocab + j])
                for i, row in enumerate(rows) for j in range(n_vocab))
    expect(worst <= info["tol_abs"], f"logits: off by {worst}")


def start(*args):
    process = subprocess.Popen([PROGRAM, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=ENV)
    timer = threading.Timer(100, process.kill)
    timer.start()
    return process, timer


def wait_for(process, marker, seen=b""):
    """Reads standard error until marker stands in it; gives everything read so far."""
    while marker not in seen:
        block = process.stderr.read1(4096)
        expect(block, f"ended before {marker}: {seen}")
        seen += block
    return seen


@check
def ctrl_c_ends_with_130_and_a_line():
    text = write("endless.txt", b"The quick brown fox jumps over the lazy dog again. " * 20000)
    process, timer = start("ask", "--model", MODEL, "--entries", "64", "--attach", text, "x")
    wait_for(process, b"trained")
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate()
    timer.cancel()
    expect(process.returncode == 130, f"exit {process.returncode}: {rest}")
    expect(b"keepsake-cli: cancelled" in rest, f"no line: {rest}")


def wait_for_handler(process):
    """Until the program has put a handler on SIGINT."""
    while process.poll() is None:
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
            caught = next(line for line in file if line.startswith("SigCgt:"))
        if int(caught.split()[1], 16) >> (signal.SIGINT - 1) & 1:
            return
        time.sleep(0.005)


@check
def ctrl_c_ends_every_command_with_130():
    text = write("endless.txt", b"The quick brown fox jumps over the lazy dog again. " * 200000)
    for args in (["ask", "--model", MODEL],  # waits for the question
                 ["inspect", "tokens", "--model", MODEL, "--file", text, "--json"]):
        process, timer = start(*args)
        wait_for_handler(process)
        process.send_signal(signal.SIGINT)
        process.wait()
        rest = process.stderr.read()
        timer.cancel()
        expect(process.returncode == 130, f"{args}: exit {process.returncode}: {rest}")
        expect(b"keepsake-cli: cancelled" in rest, f"{args}: no line: {rest}")


@check
def ctrl_c_in_chat_keeps_the_conversation():
    text = write("endless.txt", b"The quick brown fox jumps over the lazy dog again. " * 20000)
    process, timer = start("chat", "--model", MODEL, "--entries", "64", "--max-tokens", "4", "--json", "--attach", text)
    process.stdin.write(b"what is it?\n")
    process.stdin.flush()
    seen = wait_for(process, b"trained")
    process.send_signal(signal.SIGINT)
    seen = wait_for(process, b"dropped", seen)
    out, rest = process.communicate(b"hello\n/quit\n")
    timer.cancel()
    expect(process.returncode == 0, f"exit {process.returncode}: {seen + rest}")
    answer = json.loads(out)
    expect(answer["prompt_tokens"] < 200, "the dropped message is still there")


@check
def chat_keeps_its_memory_and_moves_its_budget():
    lines = (b"hello there\n/kv-budget 1MiB\n/stats\n/entries 40\nand now?\n/policy streaming\n/nonsense\n"
             b"/continue\n/quit\n")
    code, out, err = run("chat", "--model", MODEL, "--gate", GATE, "--json", "--max-tokens", "6", "--kv-budget", "4MiB",
                         "--chunk", "32", "--temperature", "0", stdin=lines)
    expect(code == 0, err)
    decoder, answers, at = json.JSONDecoder(), [], 0
    while out[at:].strip():
        at += len(out[at:]) - len(out[at:].lstrip())
        answer, length = decoder.raw_decode(out[at:])
        answers.append(answer)
        at += length
    expect(len(answers) >= 3, f"{len(answers)} results: {err}")
    first, stats, second = answers[:3]
    expect(first["memory"]["kv_budget_bytes"] > 3 << 20, "the first budget")
    expect(stats["memory"]["kv_budget_bytes"] <= 1 << 20, "the budget did not move")
    expect(second["memory"]["tokens_seen"] > first["memory"]["tokens_seen"], "the conversation starts anew")
    expect(second["memory"]["entries_per_stream"] <= 40, "entries")
    expect("/nonsense" in err, "an unknown command is named")


@check
def ctrl_c_in_chat_names_what_goes_on():
    process, timer = start("chat", "--model", MODEL, "--entries", "64", "--max-tokens", "1000000")
    process.stdin.write(b"tell me a long story\n")
    process.stdin.flush()
    process.stdout.read(200)
    process.send_signal(signal.SIGINT)
    wait_for(process, b"note: Cancelled; /continue goes on.")
    process.communicate(b"/quit\n")
    timer.cancel()
    expect(process.returncode == 0, f"exit {process.returncode}")


@check
def targets_that_cannot_be_are_refused_in_human_units():
    """With the smallest that works, and that one works when it is typed."""
    lines = b"hello\n/kv-budget 1\n/kv-budget 100000GiB\n/budget 1\n/kv-budget some\n/entries some\n/quit\n"
    begin = ("chat", "--model", MODEL, "--max-tokens", "2")
    _, _, err = run(*begin, stdin=lines)
    told = [line for line in err.splitlines() if line.startswith("keepsake-cli: ")]
    expect(len(told) == 5, err)
    expect("too little memory for keys and values; the smallest budget that works is " in told[0], told[0])
    expect(told[0].endswith("KiB (1 entry in each stream)"), told[0])
    expect("keys and values can take " in told[1] and "at most" in told[1], told[1])
    expect("a memory target of 1 byte is too small" in told[2], told[2])
    expect("no amount of memory" in told[3] and "/entries needs an amount" in told[4], err)
    kv, total = told[0].split("works is ")[1].split(" (")[0], told[2].split("works is ")[1]
    expect(not any(len(word) > 6 and word.isdigit() for line in told[:3] for word in line.split()), err)
    _, _, err = run(*begin, stdin=f"hello\n/kv-budget {kv}\n/budget {total}\nand now?\n/quit\n".encode())
    expect("keepsake-cli: " not in err, err)


@check
def another_policy_keeps_floor_and_pins():
    text = write("floor.txt", b"The keeper walks to the lamp and back. " * 60)
    code, out, err = run("chat", "--model", MODEL, "--gate", GATE, "--json", "--max-tokens", "2", "--entries", "32",
                         "--policy", "random", "--floor", "24", "--temperature", "0",
                         stdin=f"/policy dbtrimkv\n/attach {text}\nWhere?\n".encode())
    expect(code == 0, err)
    result = json.loads(out)
    expect(result["policy"] == "dbtrimkv", result["policy"])
    least = min(min(row) for row in result["memory"]["entries_by_head"])
    expect(least >= 24, f"a stream keeps only {least} entries")


@check
def longer_than_trained_is_said_once():
    text = write("longer.txt", b"The lamp burns all night. " * 150)
    code, _, err = run("chat", "--model", MODEL, "--gate", GATE, "--json", "--max-tokens", "2", "--entries", "32",
                       "--attach", text, stdin=b"one\ntwo\nthree\n/quit\n")
    expect(code == 0, err)
    expect(err.count("the model was trained for") == 1, f"said once: {err}")


@check
def bench_measures_and_judges():
    text = write("bench.txt", b"The keeper walks to the lamp and back. " * 300)
    code, out, err = run("bench", "memory", "--model", MODEL, "--file", text, "--tokens", "1200", "--step", "200",
                         "--decode", "8", "--entries", "64", "--json")
    result = json.loads(out)
    expect(len(result["samples"]) == 6, f"{len(result['samples'])} samples")
    expect(result["verdicts"]["within_budget"], f"over the budget: {err}")
    code, out, err = run("bench", "speed", "--model", MODEL, "--file", text, "--prompt", "64", "--depths", "0,100",
                         "--decode", "4", "--repeat", "1", "--json")
    expect(code == 0 and len(json.loads(out)["rows"]) == 3, err)
    code, out, err = run("bench", "recall", "--model", MODEL, "--gate", GATE, "--prompts", "2", "--words", "60",
                         "--entries", "32", "--answer-tokens", "2", "--json")
    expect(code == 0, err)
    policies = json.loads(out)["policies"]
    expect([p["policy"] for p in policies] == ["full", "dbtrimkv", "streaming", "keydiff", "random"], "policies")
    expect(all(len(p["items"]) == 2 for p in policies), "prompts")


@check
def the_copy_of_the_weights_follows_the_target():
    """Made where the target leaves room, counted, left out on request and under the smallest target."""
    model = os.path.join(CASES, "llama-quant", "llama-q8_0.gguf")
    text = write("copy.txt", b"The keeper walks to the lamp and back. " * 40)
    base = ["bench", "speed", "--model", model, "--gate", "none", "--file", text, "--prompt", "16", "--depths", "0",
            "--decode", "2", "--repeat", "1", "--json"]
    whole = json.loads(run(*base, "--entries", "64")[1])
    expect(whole["mode"] == "fast", "fast is the default")
    expect(0 < whole["repacked_bytes"] < whole["weight_bytes"], f"a copy: {whole['repacked_bytes']}")
    plain = json.loads(run(*base, "--entries", "64", "--no-repack", "--mode", "exact")[1])
    expect(plain["mode"] == "exact" and plain["repacked_bytes"] == 0, "none on request")
    expect(plain["weight_bytes"] == whole["weight_bytes"] - whole["repacked_bytes"], "the copy counts as weights")
    code, _, err = run(*base, "--budget", "1KiB")
    least = err.split("at least ")[1].split(" MiB")[0]
    expect(code == 3, f"code {code}")
    code, out, err = run(*base, "--budget", least + "MiB")
    expect(code == 0 and json.loads(out)["repacked_bytes"] == 0, f"the smallest target has no copy: {err}")
    large = json.loads(run(*base, "--budget", "64MiB")[1])
    expect(large["repacked_bytes"] == whole["repacked_bytes"], "a large target has all of it")


@check
def perplexity_in_both_modes():
    model = os.path.join(CASES, "llama-quant", "llama-q8_0.gguf")
    text = write("foreseen.txt", b"The keeper walks to the lamp and back. " * 40)
    base = ["bench", "perplexity", "--model", model, "--gate", "none", "--file", text, "--json"]
    code, out, err = run(*base, "--tokens", "200", "--context", "64")
    expect(code == 0, err)
    both = json.loads(out)
    expect(both["tokens_foreseen"] == 200 - 4, f"{both['tokens_foreseen']} tokens")
    expect(both["exact"] > 1 and abs(both["fast"] / both["exact"] - 1) < 0.05, f"{both}")
    expect(abs(both["difference_percent"] - 100 * (both["fast"] / both["exact"] - 1)) < 1e-6, "difference")
    one = json.loads(run(*base, "--tokens", "200", "--context", "64", "--mode", "exact")[1])
    expect(abs(one["exact"] / both["exact"] - 1) < 1e-9 and "fast" not in one, f"{one}")
    expect_failure(2, base[:-1] + ["--tokens", "100000"], "longer")
    expect_failure(2, base[:-1] + ["--context", "1"], "--context")


if __name__ == "__main__":
    sys.exit(main())
