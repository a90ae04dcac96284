#!/usr/bin/env python3
"""Fast arithmetic foresees a text as well as exact arithmetic: perplexity within 0.5 %.

Usage: test-perplexity.py PROGRAM.  The default model's file comes from KS_MODEL, else from the user's
model folder; the text is the sample document.  Prints TAP.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
import subprocess
import sys

BOUND_PERCENT = 0.5
N_TOKENS = 768


def model_path():
    if os.environ.get("KS_MODEL"):
        return os.environ["KS_MODEL"]
    data_home = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(data_home, "keepsake", "models", "SmolLM2-135M-Instruct.Q4_1.gguf")


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    text = os.path.join(root, "data", "samples", "keepsake-handbook.md")
    out = subprocess.run([os.path.abspath(sys.argv[1]), "bench", "perplexity", "--model", model_path(), "--gate",
                          "none", "--file", text, "--tokens", str(N_TOKENS), "--context", "256", "--json"],
                         capture_output=True, check=True).stdout
    result = json.loads(out)
    print(f"# exact {result['exact']:.3f}, fast {result['fast']:.3f}: {result['difference_percent']:+.3f} %, "
          f"{result['tokens_foreseen']} tokens")
    ok = (abs(result["difference_percent"]) <= BOUND_PERCENT and 5 < result["exact"] < 100
          and result["repacked_bytes"] > 0)
    print("1..1")
    print(("ok" if ok else "not ok") + " 1 - perplexity")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
