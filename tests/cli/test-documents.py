#!/usr/bin/env python3
"""Documents in the terminal: PDF, encrypted PDF, pictures, and how much may be attached; a tiny model reads.

Usage: test-documents.py PROGRAM CASES.  Prints TAP.  Every check states a promise.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
import pty
import signal
import subprocess
import sys
import time

from clilib import ENV, HOME, MODEL, PROGRAM, check, expect, expect_failure, main, run, write

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "media"))
import hostileimage  # noqa: E402
import hostileoffice  # noqa: E402
import hostilepdf  # noqa: E402

ASK = ["ask", "--model", MODEL, "--max-tokens", "2", "--json"]
LIVE, STORED = [], ["--session", "new"]
PICTURE = hostileimage.png_rgba([[(255, 0, 0, 255)] * 8] * 6)


def n_prompt(*args):
    code, out, err = run(*ASK, *args, "What does it say?")
    expect(code == 0, err)
    return json.loads(out)["prompt_tokens"], err


def last_attachment():
    session = json.loads(run("sessions", "list", "--json", "--limit", "1")[1])[0]["id"]
    return json.loads(run("sessions", "show", "--json", str(session))[1])["transcript"][0]["attachments"][0]


@check
def the_text_of_a_pdf_is_read_with_its_page_numbers():
    path = write("leaves.pdf", hostilepdf.many_pages(3))
    code, out, err = run("inspect", "tokens", "--model", MODEL, "--file", path, "--json")
    expect(code == 0, err)
    text = json.loads(out)["text"]
    expect(text.index("[page 2]") < text.index("Leaf 2") < text.index("[page 3]") < text.index("Leaf 3"), text)
    short = n_prompt()[0]
    for where in (LIVE, STORED):
        expect(n_prompt(*where, "--attach", path)[0] > short + 20, f"{where}: the document is not in the prompt")
    expect(last_attachment()["kind"] == "pdf" and last_attachment()["pages"] == 3, last_attachment())


@check
def documents_are_read_with_the_places_of_their_pictures():
    path = write("letter.docx", hostileoffice.rich_docx())
    code, out, err = run("inspect", "tokens", "--model", MODEL, "--file", path, "--json")
    expect(code == 0, err)
    text = json.loads(out)["text"]
    expect(text.index("[picture 1: A red dot]") < text.index("a | b") < text.index("[picture 2]"), text)
    short = n_prompt()[0]
    for where in (LIVE, STORED):
        expect(n_prompt(*where, "--attach", path)[0] > short + 20, f"{where}: the document is not in the prompt")
    expect(last_attachment()["kind"] == "document", last_attachment())


@check
def a_folder_gives_a_verdict_on_every_file():
    folder = os.path.join(HOME.name, "letters")
    os.makedirs(os.path.join(folder, "sub"))
    for name, data in (("page 10.txt", b"the tenth page of the letters"), ("page 9.txt", b"the ninth page"),
                       ("noise.bin", bytes(range(256)) * 9), (".hidden", b"x"),
                       ("sub/note.html", hostileoffice.html())):
        write("letters/" + name, data)
    short = n_prompt()[0]
    for where in (LIVE, STORED):
        n, err = n_prompt(*where, "--attach", folder)
        expect(n > short + 20, f"{where}: nothing of the folder is in the prompt")
        expect(err.index("page 9.txt is attached") < err.index("page 10.txt is attached"), err)
        expect("sub/note.html is attached" in err and "noise.bin is left out: noise.bin is not a text" in err, err)
        expect(".hidden" not in err, err)


@check
def what_is_told_about_a_file_names_it():
    write("nothing.txt", b"")
    os.makedirs(os.path.join(HOME.name, "many"))
    for i in range(70):
        write(f"many/{i:02}.txt", b"a line")
    for where in (LIVE, STORED):
        nothing = os.path.join(HOME.name, "nothing.txt")
        expect_failure(1, ASK + where + ["--attach", nothing, "x"], "nothing.txt is empty: attach another file")
        _, err = n_prompt(*where, "--attach", os.path.join(HOME.name, "many"))
        expect("63.txt is attached" in err and "64.txt" not in err, err)
        expect("note: 6 more files are left out: a message takes at most 64 files" in err, err)


@check
def an_encrypted_pdf_needs_its_password():
    path = write("closed.pdf", hostilepdf.encrypted("aes128", b"open sesame"))
    short = n_prompt()[0]
    for where in (LIVE, STORED):
        expect_failure(1, ASK + where + ["--attach", path, "x"], "closed.pdf is encrypted: give its password with")
        expect_failure(1, ASK + where + ["--attach", path, "--password", "wrong", "x"], "password")
        expect(n_prompt(*where, "--attach", path, "--password", "open sesame")[0] > short, f"{where}: right password")


@check
def a_wrong_password_is_said_once():
    path = write("locked.pdf", hostilepdf.encrypted("aes128", b"open sesame"))
    for where in (LIVE, STORED):
        code, _, err = run(*ASK, *where, "--attach", path, "--password", "wrong", "x")
        expect(code == 1 and err.count("password") == 1 and err.count("locked.pdf") == 1, f"{where}: {err}")
        args = [*ASK, *where, "--attach", path, "--password", "wrong", "x"]
        code, screen = ask_on_terminal(args, [b"\x03"])
        told = "That is not the password. Password for locked.pdf: "
        expect(code == 1 and told in screen and screen.count("is not the password") == 1, f"{where}: {screen}")
        expect("locked.pdf stays closed: its password was not given" in screen, f"{where}: {screen}")


@check
def words_of_scanned_pages_are_pointed_out_to_a_model_without_eyes():
    """Once, and only where nobody has asked for them; --ocr without a session says what to add."""
    path, picture = write("scan.pdf", hostilepdf.scanned("Some words", "Shapes")), write("blue.png", PICTURE)
    _, err = n_prompt("--attach", path)
    expect("scan.pdf: 1 of 2 pages hold no text; this model has no eyes, but with --session new --ocr" in err, err)
    _, err = n_prompt("--attach", path, "--pages", "text")
    expect("--ocr" not in err, err)
    _, err = n_prompt(*STORED, "--attach", path, "--attach", picture)
    expect(err.count("start with --ocr") == 1, err)
    _, err = n_prompt(*STORED, "--ocr", "--attach", path)
    expect("start with --ocr" not in err, err)
    _, err = n_prompt("--ocr", "--attach", path)
    expect(err.count("--ocr") == 1 and "--ocr recognises words only in a stored session: add --session new" in err, err)


def ask_on_terminal(args, typed):
    """(exit code, screen): types a line whenever a password is asked for."""
    leader, follower = pty.openpty()
    # A terminal of its own: the program opens /dev/tty.
    process = subprocess.Popen(["setsid", "--ctty", "--wait", PROGRAM, *args], stdin=follower, stdout=follower,
                               stderr=follower, env=ENV)
    os.close(follower)
    screen, n_typed = b"", 0
    try:
        while block := os.read(leader, 4096):
            screen += block
            if n_typed < len(typed) and screen.count(b"Password for") > n_typed:
                time.sleep(0.05)  # the program switches echo off right after it has asked
                os.write(leader, typed[n_typed])
                n_typed += 1
    except OSError:
        pass
    os.close(leader)
    return process.wait(timeout=60), screen.decode(errors="replace")


@check
def a_terminal_is_asked_for_the_password_and_does_not_show_it():
    path = write("closed\x1b[31m.pdf", hostilepdf.encrypted("aes128", b"open sesame"))
    for where in (LIVE, STORED):
        args = ["ask", "--model", MODEL, "--max-tokens", "2", *where, "--attach", path, "x"]
        code, screen = ask_on_terminal(args, [b"nonsense\n", b"open sesamee\x7f\n"])
        expect(code == 0, f"{where}: {screen}")
        expect("sesame" not in screen and "nonsense" not in screen and "\x1b[31m" not in screen, screen)
        expect(screen.count("Password for") == 2, screen)
        code, screen = ask_on_terminal(args, [b"\x03"])
        expect(code == 1 and "password" in screen, f"{where}: {code}: {screen}")


@check
def pictures_are_stored_but_not_read():
    path = write("red.png", PICTURE)
    expect_failure(4, ASK + ["--attach", path, "x"], "picture")
    _, err = n_prompt(*STORED, "--attach", path)
    expect("picture" in err, f"nothing was said about the picture: {err}")
    expect(last_attachment()["kind"] == "image" and last_attachment()["name"] == "red.png", last_attachment())


@check
def what_cannot_be_read_is_refused_in_both_ways():
    for name, data in (("cut.pdf", hostilepdf.simple()[:300]), ("zeros.bin", b"\0" * 5000)):
        path = write(name, data)
        for where in (LIVE, STORED):
            code, _, err = run(*ASK, *where, "--attach", path, "x")
            expect(code in (1, 4) and name in err, f"{where} {name}: {code}: {err}")


@check
def all_attachments_together_have_a_cap():
    paths = [write(f"half{i}.txt", b"words and words " * (2600 << 10)) for i in range(2)]  # 41 MiB each
    args = [part for path in paths for part in ("--attach", path)]
    for where in (LIVE, STORED):
        expect_failure(1, ASK + where + args + ["x"], "64 MiB")
    for path in paths:
        os.unlink(path)


def has_worker(pid):
    """Whether one of the process's threads has started another program."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
        for task in tasks:
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                if file.read().strip():
                    return True
    except OSError:
        pass
    return False


@check
def ctrl_c_while_a_document_is_read_ends_with_130():
    path = write("many.pdf", hostilepdf.many_pages(4000))
    for where in (LIVE, STORED):
        process = subprocess.Popen([PROGRAM, *ASK, *where, "--attach", path, "x"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=ENV)
        while process.poll() is None and not has_worker(process.pid):
            time.sleep(0.005)
        expect(process.poll() is None, f"{where}: ended before the worker was there")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        expect(process.returncode == 130 and b"cancelled" in err, f"{where}: {process.returncode}: {err}")


if __name__ == "__main__":
    sys.exit(main())
