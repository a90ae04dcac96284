#!/usr/bin/env python3
"""The sample document and its questions stay true to each other, to the tokenizer and to run.sh.

Usage: test-samples.py PROGRAM.  The default model's file comes from KS_MODEL, else from the user's
model folder.  Prints TAP.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
import re
import subprocess
import sys

PROGRAM = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SAMPLES = os.path.join(ROOT, "data", "samples")


def read(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as f:
        return f.read()


QUESTIONS = json.loads(read("data", "samples", "questions.json"))
DOCUMENT = read("data", "samples", QUESTIONS["document"])


def model_path():
    if os.environ.get("KS_MODEL"):
        return os.environ["KS_MODEL"]
    data_home = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(data_home, "keepsake", "models", "SmolLM2-135M-Instruct.Q4_1.gguf")


def check_answers_stand_in_the_text():
    """Every question has an accepted answer that the document contains, in the chapter it names."""
    chapters = re.split(r"^## (?=\d+\. )", DOCUMENT, flags=re.M)[1:]
    for q in QUESTIONS["questions"]:
        chapter = next(c for c in chapters if c.startswith(f"{q['chapter']}. "))
        assert any(a.lower() in chapter.lower() for a in q["accept"]), q["id"]
    assert len({q["id"] for q in QUESTIONS["questions"]}) == len(QUESTIONS["questions"]) >= 12


def check_length():
    """The document is as long as the README says: 6,000 to 7,500 tokens of the default model."""
    model = model_path()
    assert os.path.exists(model), f"{model}: missing; packaging/fetch-model.py fetches it"
    out = subprocess.run([PROGRAM, "inspect", "tokens", "--model", model, "--json", "--file",
                          os.path.join(SAMPLES, QUESTIONS["document"])],
                         capture_output=True, check=True, timeout=60).stdout
    n_tok = json.loads(out)["n"]
    assert 6000 <= n_tok <= 7500, n_tok


def check_run_script():
    """run.sh asks one of the questions, about this document."""
    script = read("run.sh")
    question = re.search(r"SAMPLE_QUESTION='(.*)'", script).group(1)
    assert question in [q["question"] for q in QUESTIONS["questions"]], question
    assert f"data/samples/{QUESTIONS['document']}" in script


def main():
    checks = [check_answers_stand_in_the_text, check_length, check_run_script]
    n_failed = 0
    print(f"1..{len(checks)}")
    for i, check in enumerate(checks, 1):
        try:
            check()
        except Exception as e:  # a failed promise of any kind is this check's verdict
            n_failed += 1
            print(f"# {type(e).__name__}: {e}\nnot ", end="")
        print(f"ok {i} - samples.{check.__name__[6:]}", flush=True)
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
