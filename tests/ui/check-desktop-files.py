#!/usr/bin/env python3
"""What desktops read of the program: valid, translated, and all of one name.

Usage: check-desktop-files.py DESKTOP_FILE METAINFO_FILE SERVICE_FILE (as built)
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import configparser
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ID = "org.keepsake.Keepsake"
LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def run(*command):
    """Complaints of a validator; it succeeds silently or with remarks."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    except FileNotFoundError:
        return [f"{command[0]} is missing: packaging/install-deps.sh test"]
    return [] if done.returncode == 0 else (done.stdout + done.stderr).splitlines()


def read_languages():
    with open(os.path.join(ROOT, "po/LINGUAS"), encoding="utf-8") as f:
        return f.read().split()


def check_desktop(path):
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str
    parser.read(path, encoding="utf-8")
    entry = parser["Desktop Entry"]
    complaints = run("desktop-file-validate", path)
    if os.path.basename(path) != ID + ".desktop" or entry["Icon"] != ID:
        complaints.append("desktop file and icon are not named by the id")
    if entry["DBusActivatable"] != "true":
        complaints.append("a second start would not reach the first window")
    for action in entry["Actions"].rstrip(";").split(";"):
        if f"Desktop Action {action}" not in parser:
            complaints.append(f"action {action} has no group")
    for language in read_languages():
        complaints += [f"{key}[{language}] is missing" for key in ("Comment", "Keywords", "GenericName")
                       if f"{key}[{language}]" not in entry]
        words = entry.get(f"Keywords[{language}]", "")
        if not words.endswith(";") or "," in words:
            complaints.append(f"Keywords[{language}] are not ended by semicolons each: {words}")
    return complaints


def check_metainfo(path):
    root = ET.parse(path).getroot()
    complaints = run("appstreamcli", "validate", "--no-net", path)
    # The program has no home page of its own; newer validators call that a warning.
    graded = [line for line in complaints if re.match(r"\s*[EW]: ", line)]
    if graded and all("url-homepage-missing" in line for line in graded):
        complaints = []
    summary = root.findtext("summary")
    if root.findtext("id") != ID or root.findtext("launchable") != ID + ".desktop":
        complaints.append("metainfo is not named by the id")
    if len(summary) > 35 or summary.endswith("."):
        complaints.append(f"the summary has at most 35 characters and no full stop: {summary}")
    with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as f:
        version = re.search(r"version: '([^']+)'", f.read()).group(1)
    if root.find("releases/release").get("version") != version:
        complaints.append(f"the newest release is not {version}")
    for language in read_languages():
        if language not in [element.get(LANG) for element in root.findall("description/p")]:
            complaints.append(f"the description is not there in {language}")
    return complaints


def check_service(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    complaints = []
    if os.path.basename(path) != ID + ".service" or f"Name={ID}\n" not in text:
        complaints.append("the D-Bus service is not named by the id")
    if not re.search(r"^Exec=/\S+/keepsake --gapplication-service$", text, re.M):
        complaints.append("the D-Bus service does not start the program")
    return complaints


def check_icons():
    complaints = []
    for path, size in (("scalable/apps/" + ID + ".svg", 128), ("symbolic/apps/" + ID + "-symbolic.svg", 16)):
        root = ET.parse(os.path.join(ROOT, "data/icons/hicolor", path)).getroot()
        if (root.get("width"), root.get("height"), root.get("viewBox")) != (str(size), str(size), f"0 0 {size} {size}"):
            complaints.append(f"{path}: not {size} x {size}")
    return complaints


def main(desktop, metainfo, service):
    checks = (("desktop file", check_desktop(desktop)), ("metainfo", check_metainfo(metainfo)),
              ("D-Bus service", check_service(service)), ("icons", check_icons()))
    print(f"1..{len(checks)}")
    for i, (name, complaints) in enumerate(checks, 1):
        for complaint in complaints:
            print(f"# {complaint}")
        print(("not ok" if complaints else "ok") + f" {i} - {name}")
    return 1 if any(complaints for _, complaints in checks) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
