#!/usr/bin/env python3
"""Stored sessions in the terminal: list, show, rename, delete, search, export, import.

Usage: test-sessions.py PROGRAM CASES.  Prints TAP.  Every check states a promise.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import base64
import hashlib
import json
import os
import pty
import resource
import shutil
import sqlite3
import subprocess
import sys

from clilib import ENV, HOME, MODEL, PROGRAM, check, expect, expect_failure, main, run, run_bytes, write

ESCAPES = "a\x1b[31m\x07\x9b2J\n\u202e\u2066b"
PICTURE = b"no picture at all \x00\xff" * 40


def bundle(title, *messages, media=()):
    """A bundle of one path: (role, text, attachments) a message, as docs/formats/bundle.md says."""
    rows = [{"parent": i, "role": role, "state": "complete", "text": text, "created_us": 1700000000000000 + i,
             "n_tokens": 3, "active_child": i + 2 if i + 1 < len(messages) else 0,
             **({"attachments": list(attached)} if attached else {})}
            for i, (role, text, *attached) in enumerate(messages)]
    return json.dumps({"format": "keepsake-session", "version": 1, "title": title, "created_us": 1700000000000000,
                       "updated_us": 1700000000000000 + len(rows), "settings": {}, "active": len(rows),
                       "messages": rows, "media": list(media)}, ensure_ascii=False).encode()


def attachment(name, data=PICTURE):
    digest = hashlib.sha256(data).hexdigest()
    return ({"kind": "image", "name": name, "sha256": digest, "n_bytes": len(data), "n_pages": 0, "width_px": 3,
             "height_px": 2}, {"sha256": digest, "base64": base64.b64encode(data).decode()})


def add(title, *messages, media=()):
    """Imports a session of these messages and gives its number."""
    path = write("bundle.json", bundle(title, *messages, media=media))
    code, out, err = run("import", "--json", path)
    expect(code == 0, err)
    return json.loads(out)[0]["id"]


def listed():
    code, out, err = run("sessions", "list", "--json")
    expect(code == 0, err)
    return json.loads(out)


def shown(session, *options):
    code, out, err = run("sessions", "show", "--json", *options, str(session))
    expect(code == 0, err)
    return json.loads(out)


def exported(session, form="json"):
    code, out, err = run_bytes("export", "--format", form, "--output", "-", str(session))
    expect(code == 0, err)
    return out


def fresh():
    """Empties the store."""
    expect(run("sessions", "delete", "--all", "--yes")[0] == 0, "delete all")


@check
def every_command_explains_itself():
    for command in (["sessions"], *(["sessions", c] for c in ("list", "show", "rename", "delete", "search")),
                    ["export"], ["import"]):
        code, out, _ = run(*command, "--help")
        expect(code == 0 and "Usage:" in out and "Examples:" in out, f"{command}: {code}: {out}")


@check
def wrong_arguments_end_with_2():
    for args in (["sessions"], ["sessions", "nonsense"], ["sessions", "list", "x"], ["sessions", "show"],
                 ["sessions", "rename", "1"], ["sessions", "delete"], ["sessions", "delete", "--all", "1"],
                 ["sessions", "search"], ["sessions", "list", "--limit", "-1"], ["export"],
                 ["export", "--all", "1"], ["export", "--format", "docx", "1"],
                 ["export", "--output", "x", "--folder", "y", "1"], ["export", "--output", "x", "1", "2"],
                 ["import"]):
        expect(run(*args)[0] == 2, f"{args}: not 2")


@check
def a_store_without_sessions_says_so():
    fresh()
    code, out, err = run("sessions", "list")
    expect(code == 0 and out == "" and "--session new" in err, err)
    expect(listed() == [], "list")
    expect_failure(1, ["sessions", "show", "3"], "3")
    expect_failure(1, ["export", "nothing"], "nothing")


@check
def sessions_are_listed_shown_renamed_found_and_deleted():
    fresh()
    first = add("Cable cars", ("user", "How many lines are there?"), ("assistant", "Seven lines."))
    second = add("Kettle", ("user", "지금 물이 끓나요?"), ("assistant", "Nein, noch nicht über 90 Grad."))
    expect([s["id"] for s in listed()] == [second, first], "newest first")
    expect(listed()[1]["messages"] == 2 and listed()[1]["title"] == "Cable cars", "facts")
    expect(len(run("sessions", "list", "--limit", "1")[1].splitlines()) == 2, "limit, one line of headings")

    code, out, err = run("sessions", "show", "cable")  # the beginning of one title
    expect(code == 0 and out.startswith("Cable cars\n"), err)
    expect(out.index("How many lines") < out.index("Seven lines."), "oldest first")
    roles = [(m["role"], m["text"]) for m in shown(second)["transcript"]]
    expect(roles == [("user", "지금 물이 끓나요?"), ("assistant", "Nein, noch nicht über 90 Grad.")], roles)

    expect(run("sessions", "rename", str(first), "Ropeways")[0] == 0, "rename")
    expect(listed()[1]["title"] == "Ropeways", "renamed")
    expect_failure(1, ["sessions", "show", "Cable cars"], "Cable cars")

    for words, want in ((["ropeways"], [first]), (["seven", "LINES"], [first]), (["über"], [second]),
                        (["끓나"], [second]), (["seven", "kettle"], []), (["line"], [first])):
        hits = json.loads(run("sessions", "search", "--json", *words)[1])
        expect([h["id"] for h in hits] == want, f"{words}: {hits}")
    expect("Seven lines." in run("sessions", "search", "seven")[1], "snippet")

    expect_failure(2, ["sessions", "delete", str(first)], "--yes")
    expect_failure(1, ["sessions", "delete", "--yes", str(first), "777"], "777")
    expect(len(listed()) == 2, "nothing goes unless all are there")
    expect(run("sessions", "delete", "--yes", str(first), str(first))[0] == 0, "delete")
    expect([s["id"] for s in listed()] == [second], "gone")
    with sqlite3.connect(os.path.join(ENV["XDG_DATA_HOME"], "keepsake", "sessions.db")) as database:
        rows = database.execute("SELECT count (*) FROM session").fetchone()
    expect(rows == (1,), "purged, not only marked")


@check
def a_question_that_was_stopped_unread_is_told_of():
    """In the transcript, among the turns of the memory, and once when the session goes on; it is read by nobody."""
    options = ("--model", MODEL, "--threads", "1")
    _, out, _ = run("ask", *options, "--session", "new", "--json", "--max-tokens", "3", "one")
    session = str(json.loads(out)["session"]["id"])
    expect(run("ask", *options, "--session", session, "--max-tokens", "3", "two")[0] == 0, "second question")
    with sqlite3.connect(os.path.join(ENV["XDG_DATA_HOME"], "keepsake", "sessions.db")) as database:
        database.execute("UPDATE message SET state = 2, text = '' WHERE id = (SELECT max (id) FROM message "
                         "WHERE session = ?)", (session,))
    expect(run("sessions", "show", session)[1].count(", stopped before it was read]") == 1, "transcript")
    for told in (1, 0):
        code, _, err = run("ask", *options, "--session", session, "--max-tokens", "3", "and now?")
        expect(code == 0 and err.count("Question 2 was stopped before it was read and stays out: ask it again.")
               == told, err)
    _, out, err = run("memory", *options, "--session", session)
    turns = [line.split() for line in out.splitlines() if line.startswith("turn ")]
    expect([turn[1] for turn in turns] == ["1", "2", "3", "4"], out)
    expect(turns[1][2:] == "stopped before it was read".split(), out)
    memory = json.loads(run("memory", *options, "--session", session, "--json")[1])
    expect([turn["turn"] for turn in memory["turns"]] == [1, 3, 4], str(memory["turns"]))
    expect(memory["left_out"] == [{"turn": 2, "stopped": True}], str(memory["left_out"]))


def delete_on_a_terminal(session, answer):
    """(exit code, what the terminal showed)"""
    leader, follower = pty.openpty()
    process = subprocess.Popen([PROGRAM, "sessions", "delete", str(session)], stdin=follower, stdout=follower,
                               stderr=follower, env=ENV, close_fds=True)
    os.close(follower)
    os.write(leader, answer + b"\n")
    screen = b""
    try:
        while block := os.read(leader, 4096):
            screen += block
    except OSError:
        pass  # the other end is closed
    os.close(leader)
    return process.wait(timeout=60), screen.decode()


@check
def a_terminal_is_asked_before_deleting():
    fresh()
    session = add(ESCAPES, ("user", "hello"))
    code, screen = delete_on_a_terminal(session, b"n")
    expect(code == 130 and "cannot be undone" in screen and "\x1b" not in screen, (code, screen))
    expect(len(listed()) == 1, "kept")
    code, screen = delete_on_a_terminal(session, b"yes")
    expect(code == 0 and listed() == [], (code, screen))


@check
def export_import_export_gives_the_same_bundle():
    fresh()
    item, medium = attachment("../../x<b>\".png")
    session = add("Round <b>trip</b>", ("user", "see", item), ("assistant", "```c\nx < y;\n```\n"),
                  ("user", "more 한국어"), ("assistant", "done"), media=[medium])
    run("sessions", "rename", str(session), "Round trip")
    first = exported(session)
    again = json.loads(run("import", "--json", write("first.json", first))[1])[0]["id"]
    expect(again != session, "a new session")
    expect(exported(again) == first, "identical after a round trip")
    fresh()
    third = json.loads(run("import", "--json", write("first.json", first))[1])[0]["id"]
    expect(exported(third) == first, "identical in an empty store, media included")
    expect(base64.b64encode(PICTURE) in first, "the media are inside")
    html = exported(third, "html").decode()
    expect("Content-Security-Policy" in html and "<script" not in html and "x<b>" not in html, "html")
    expect(exported(third, "md").decode().startswith("# Round trip\n"), "md")


@check
def exported_files_have_safe_names_and_never_overwrite():
    fresh()
    folder = os.path.join(HOME.name, "out")
    os.mkdir(folder)
    titles = ["../a/b", "CON", "\U0001f41f" * 300, "", "/etc/passwd", ".hidden", "-rf", ESCAPES, "nul.txt", "a\\b:c"]
    sessions = [add(title, ("user", "text")) for title in titles]
    for _ in range(2):
        for form in ("md", "json", "html"):
            code, out, err = run("export", "--format", form, "--folder", folder, "--json", *map(str, sessions))
            expect(code == 0, err)
            for entry in json.loads(out):
                name = os.path.basename(entry["path"])
                expect(os.path.dirname(entry["path"]) == folder and os.path.isfile(entry["path"]), entry)
                expect(len(name.encode()) <= 130 and name[0] not in ".-" and name.isprintable(), name)
                expect(name.split(".")[0].lower() not in ("con", "nul"), name)
    names = os.listdir(folder)
    expect(len(names) == 2 * 3 * len(titles), f"{len(names)} files")
    expect(not os.path.exists(os.path.join(HOME.name, "a")), "../a was not followed")
    path = write("kept.md", b"mine")
    expect_failure(1, ["export", "--output", path, str(sessions[0])], "kept.md", "overwritten")
    with open(path, "rb") as file:
        expect(file.read() == b"mine", "the file is as it was")
    expect(run("export", "--output", os.path.join(HOME.name, "new.html"), str(sessions[0]))[0] == 0, "new file")
    with open(os.path.join(HOME.name, "new.html"), "rb") as file:
        expect(file.read(9).lower() == b"<!doctype", "the format follows the name")


@check
def an_export_that_fails_half_way_leaves_no_part_of_a_file():
    """Writing meets a limit of the file's size (as a full disk would): a sentence, and no part stays."""
    fresh()
    session = add("long", ("user", "x" * 4_000_000))
    folder = os.path.join(HOME.name, "killed")
    os.mkdir(folder)
    for output in (["--folder", folder], ["--output", os.path.join(folder, "x.md")]):
        code, _out, err = run("export", *output, str(session),
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000)))
        expect(code == 1 and err.count("\n") == 1 and "too large" in err.lower(), f"{code} {err}")
        expect(os.listdir(folder) == [], os.listdir(folder))
    expect(run("export", "--folder", folder, str(session))[0] == 0, "without the limit")
    expect(os.path.getsize(os.path.join(folder, "long.md")) > 4_000_000, "complete")


@check
def titles_and_texts_cannot_move_the_terminal():
    fresh()
    item, medium = attachment(ESCAPES + ".png")
    session = add(ESCAPES, ("user", ESCAPES, item), ("assistant", ESCAPES), media=[medium])
    for args in (["sessions", "list"], ["sessions", "show", str(session)], ["sessions", "search", "31m"],
                 ["sessions", "rename", str(session), ESCAPES], ["sessions", "show", ESCAPES + "?"],
                 ["import", write("odd\x1b[31m.json", bundle(ESCAPES, ("user", "x")))]):
        leader, follower = pty.openpty()
        process = subprocess.Popen([PROGRAM, *args], stdin=follower, stdout=follower, stderr=follower, env=ENV)
        os.close(follower)
        screen = b""
        try:
            while block := os.read(leader, 4096):
                screen += block
        except OSError:
            pass
        os.close(leader)
        expect(not set(screen.decode()) & set("\u202e\u2066"), f"{args}: {screen!r}")
        process.wait(timeout=60)
        expect(b"\x1b" not in screen and b"\x07" not in screen and "\x9b".encode() not in screen, f"{args}: {screen}")


@check
def what_is_no_bundle_changes_nothing():
    fresh()
    good = bundle("good", ("user", "x"))
    pipe = os.path.join(HOME.name, "pipe.json")
    os.mkfifo(pipe)
    bad = {"cut.json": good[:-20], "empty.json": b"", "text.json": b"hello", "list.json": b"[1, 2]",
           "key.json": good.replace(b'"title"', b'"headline"'), "tail.json": good + b"{}",
           "newer.json": good.replace(b'"version": 1', b'"version": 4'),
           "hash.json": bundle("h", ("user", "x", attachment("a", b"1")[0]), media=[
               dict(attachment("a", b"1")[1], base64=base64.b64encode(b"2").decode())])}
    for name, data in bad.items():
        expect_failure(1, ["import", write(name, data)], name)
    for path in (pipe, HOME.name, "/dev/zero", os.path.join(HOME.name, "missing.json")):
        expect_failure(1, ["import", path], path)
    expect(listed() == [], "nothing was imported")
    code, out, _ = run("import", "--json", write("good.json", good), write("cut.json", good[:-20]))
    expect(code == 1 and len(json.loads(out)) == 1 and len(listed()) == 1, "those before the bad one stay")


@check
def a_store_that_cannot_be_used_is_named_and_left_alone():
    fresh()
    add("kept", ("user", "x"))
    home = os.path.join(HOME.name, "other")
    shutil.copytree(ENV["XDG_DATA_HOME"], home)
    path = os.path.join(home, "keepsake", "sessions.db")
    env = dict(ENV, XDG_DATA_HOME=home)
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with open(path, "rb") as file:
        before = file.read()
    for args in (["sessions", "list"], ["sessions", "delete", "--yes", "1"], ["export", "--all"]):
        expect_failure(4, args, "newer", env=env)
    with open(path, "rb") as file:
        expect(file.read() == before, "newer: untouched")
    with open(path, "wb") as file:
        file.write(before[:5000])
    expect_failure(1, ["sessions", "list"], "sessions.db", env=env)
    with open(path, "rb") as file:
        expect(file.read() == before[:5000], "cut: untouched")


if __name__ == "__main__":
    sys.exit(main())
