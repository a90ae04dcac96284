"""desktop.py - drives the whole program as a user with a screen reader would: starts it on the test's own
display and bus, finds things by their accessible names, presses, types, sets values, takes pictures, and
fails on every warning that warnings.txt does not list.

Run by the system's /usr/bin/python3 (it has the bindings) through with-display.sh with GTK_A11Y=atspi.
The environment names the programs: KS_PROGRAM, KS_SHOT_DIR (pictures; may be missing).
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib

import gi

gi.require_version('Atspi', '2.0')
from gi.repository import Atspi, GLib  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
POLL_S = 0.05
APP_NAME = 'keepsake'
# How the C library and the toolkit print what went wrong.
PROBLEM = re.compile(r'(?:^|[-\s])(?:WARNING|CRITICAL|ERROR) \*\*|'
                     r'runtime error:|ERROR: \w+Sanitizer')


class Failure(Exception):
    """A promise that was not kept."""


def wait_for(condition, what, timeout=30.0):
    """Polls until condition() is true; returns its value."""
    end = time.monotonic() + timeout
    while True:
        try:
            value = condition()
        except GLib.Error:  # the thing went away while it was looked at
            value = None
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(f'waited {timeout:.0f} s in vain: {what}')
        time.sleep(POLL_S)


def check(condition, what):
    if not condition:
        raise Failure(what)


def listed_warnings():
    """Patterns of toolkit faults: lines of warnings.txt that are not empty and no comment."""
    with open(os.path.join(HERE, 'warnings.txt'), encoding='utf-8') as file:
        return [re.compile(line.rstrip('\n')) for line in file if line.strip() and not line.startswith('#')]


def find_problems(text):
    """Warnings in the program's standard error that are not listed."""
    listed = listed_warnings()
    return [line for line in text.splitlines()
            if PROBLEM.search(line) and not any(pattern.search(line) for pattern in listed)]


# --- the tree ---
def children(node):
    node.clear_cache()
    for i in range(node.get_child_count()):
        child = node.get_child_at_index(i)
        if child is not None:
            yield child


def is_showing(node):
    """Older toolkits tell only windows as showing: there, what has a size is."""
    states = node.get_state_set()
    if states.contains(Atspi.StateType.SHOWING):
        return True
    if not states.contains(Atspi.StateType.VISIBLE) or 'Component' not in node.get_interfaces():
        return False
    extents = Atspi.Component.get_extents(node, Atspi.CoordType.WINDOW)
    return extents.width > 0 and extents.height > 0


def walk(node):
    """The node and everything below it; what is hidden is left out with all below it."""
    yield node
    for child in children(node):
        try:
            if child.get_state_set().contains(Atspi.StateType.VISIBLE) or child.get_role() == Atspi.Role.APPLICATION:
                yield from walk(child)
        except GLib.Error:
            continue


def name_now(node):
    node.clear_cache()
    return node.get_name() or ''


def matches(node, name):
    own = node.get_name() or ''
    return name.search(own) if hasattr(name, 'search') else own == name


def has_interface(node, interface):
    """Some toolkits offer an interface without anything behind it."""
    if interface not in node.get_interfaces():
        return False
    return interface != 'Action' or Atspi.Action.get_n_actions(node) > 0


def find(root, name, interface=None, showing=True, role=''):
    """First node of that name (text or compiled pattern) that has the interface, and a role whose name contains
    role (they differ between toolkits); None when there is none."""
    for node in walk(root):
        try:
            if matches(node, name) and role in node.get_role_name() and (not showing or is_showing(node)):
                if interface is None or has_interface(node, interface):
                    return node
        except GLib.Error:
            continue
    return None


def text_of(node):
    """Text of a text view or label, else its name."""
    if 'Text' in node.get_interfaces():
        length = Atspi.Text.get_character_count(node)
        if length > 0:
            return Atspi.Text.get_text(node, 0, length)
    return node.get_name() or ''


def all_text(root):
    parts = []
    for node in walk(root):
        try:
            text = text_of(node)
        except GLib.Error:
            continue
        if text and (not parts or parts[-1] != text):
            parts.append(text)
    return '\n'.join(parts)


def press(node):
    """Does the first thing that can be done with a node: "click" of a button."""
    if not Atspi.Action.do_action(node, 0):
        raise Failure(f'"{node.get_name()}" could not be pressed')


def set_value(node, value):
    if not Atspi.Value.set_current_value(node, value):
        raise Failure(f'"{node.get_name()}" took no value')


def get_value(node):
    return Atspi.Value.get_current_value(node)


def type_into(node, text):
    Atspi.EditableText.set_text_contents(node, text)


# --- the program ---
class App:
    """One run of the program."""

    running = []  # of the current test: what is left over is ended

    def __init__(self, *args, home=None, env=None, program=None):
        self.home = home or os.environ['XDG_DATA_HOME']
        self.errors = tempfile.NamedTemporaryFile('w+', suffix='.log', delete=False)
        # Settings have to survive a restart, as a user's do.
        environment = dict(os.environ, XDG_DATA_HOME=self.home, XDG_CONFIG_HOME=os.path.join(self.home, 'config'),
                           GSETTINGS_BACKEND='keyfile', **(env or {}))
        self.started = time.monotonic()
        self.process = subprocess.Popen([program or os.environ['KS_PROGRAM'], *args], env=environment,
                                        stdin=subprocess.DEVNULL, stdout=self.errors, stderr=self.errors)
        App.running.append(self)

    def root(self):
        """The program in the accessibility tree, None before it is there."""
        desktop = Atspi.get_desktop(0)
        for child in children(desktop):
            try:
                if child.get_process_id() == self.process.pid:
                    return child
            except GLib.Error:
                continue
        return None

    def wait(self, name, timeout=30.0, interface=None, role=''):
        """The node of that name, as soon as it shows."""
        def look():
            self.check_alive()
            root = self.root()
            return find(root, name, interface, role=role) if root is not None else None
        return wait_for(look, f'"{getattr(name, "pattern", name)}" to show', timeout)

    def find(self, name, interface=None):
        root = self.root()
        return None if root is None else find(root, name, interface)

    def press(self, name, timeout=30.0):
        """The button of that name."""
        press(self.wait(name, timeout, 'Action', 'button'))

    def text(self):
        root = self.root()
        return '' if root is None else all_text(root)

    def wait_text(self, pattern, timeout=30.0):
        """Until the text in the window matches the pattern; returns the match."""
        def look():
            self.check_alive()
            return re.search(pattern, self.text())
        return wait_for(look, f'text "{pattern}"', timeout)

    def check_alive(self):
        if self.process.poll() is not None:
            raise Failure(f'the program ended by itself with {self.process.returncode}:\n{self.log()[-2000:]}')

    def log(self):
        with open(self.errors.name, encoding='utf-8', errors='replace') as file:
            return file.read()

    def picture(self, name):
        take_picture(name, self.process.pid)

    def key(self, keys):
        """Keys as xdotool names them, to the window that has the focus or, without one, to the newest."""
        focus_newest_window(self.process.pid)
        subprocess.run(['xdotool', 'key', '--clearmodifiers', keys], check=True)

    def type(self, text):
        focus_newest_window(self.process.pid)
        subprocess.run(['xdotool', 'type', '--clearmodifiers', '--delay', '15', text], check=True)

    def wait_end(self, timeout=30.0):
        """Until the program ended by itself; checks that it ended well and said nothing wrong."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise Failure(f'the program did not end within {timeout:.0f} s') from error
        check(code == 0, f'the program ended with {code}:\n{self.log()[-2000:]}')
        self.check_log()

    def quit(self, timeout=30.0):
        self.key('ctrl+q')
        self.wait_end(timeout)

    def check_log(self):
        problems = find_problems(self.log())
        check(not problems, 'warnings that are not listed in warnings.txt:\n' + '\n'.join(problems))

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


def windows_of(pid):
    result = subprocess.run(['xdotool', 'search', '--onlyvisible', '--pid', str(pid)], capture_output=True, text=True,
                            check=False)
    return [int(line) for line in result.stdout.split()]


def focus_newest_window(pid):
    """No window manager runs: somebody has to give the focus."""
    windows = windows_of(pid)
    check(windows, 'the program has no window')
    subprocess.run(['xdotool', 'windowfocus', '--sync', str(windows[-1])], check=False, stderr=subprocess.DEVNULL)


def window_size(window):
    result = subprocess.run(['xdotool', 'getwindowgeometry', '--shell', str(window)], capture_output=True, text=True,
                            check=True)
    values = dict(line.split('=') for line in result.stdout.split())
    return int(values['WIDTH']), int(values['HEIGHT'])


def resize_window(pid, width, height):
    subprocess.run(['xdotool', 'windowsize', '--sync', str(windows_of(pid)[-1]), str(width), str(height)], check=True)


def take_picture(name, pid=None):
    """The screen, as far as the windows of the process reach, as NAME.png among the build's pictures."""
    folder = os.environ.get('KS_SHOT_DIR')
    if not folder:
        return
    os.makedirs(folder, exist_ok=True)
    crop = []
    if pid is not None:
        sizes = [window_size(window) for window in windows_of(pid)]
        crop = ['-crop', f'{max(size[0] for size in sizes)}x{max(size[1] for size in sizes)}+0+0', '+repage']
    subprocess.run(['import', '-window', 'root', *crop, os.path.join(folder, f'{name}.png')], check=True)


def set_clipboard(kind, data):
    """Offers bytes of a MIME type, as another program's copy would; returns the process that offers them."""
    process = subprocess.Popen(['xclip', '-quiet', '-selection', 'clipboard', '-t', kind, '-i'], stdin=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    process.stdin.write(data)
    process.stdin.close()
    return process


def install_model(home):
    """The default model where the program looks for it, without a copy."""
    folder = os.path.join(home, 'keepsake', 'models')
    os.makedirs(folder, mode=0o700, exist_ok=True)
    target = os.path.join(folder, os.path.basename(os.environ['KS_MODEL']))
    if not os.path.lexists(target):
        os.symlink(os.environ['KS_MODEL'], target)
    return target


def write_pdf(path, pages):
    """A PDF of pages with lines of text, in the reader's own Helvetica."""
    objects = []

    def add(body):
        objects.append(body if isinstance(body, bytes) else body.encode('latin-1'))
        return len(objects)

    font = add('<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>')
    parent = 2 * len(pages) + 2
    kids = []
    for lines in pages:
        shown = ' '.join('(' + re.sub(r'([()\\])', r'\\\1', line) + ') Tj T*' for line in lines)
        stream = zlib.compress(f'BT /F1 12 Tf 16 TL 60 780 Td {shown} ET'.encode('latin-1'))
        content = add(b'<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream' % (len(stream), stream))
        kids.append(add(f'<< /Type /Page /Parent {parent} 0 R /MediaBox [0 0 595 842] '
                        f'/Resources << /Font << /F1 {font} 0 R >> >> /Contents {content} 0 R >>'))
    add(f'<< /Type /Pages /Count {len(kids)} /Kids [' + ' '.join(f'{kid} 0 R' for kid in kids) + '] >>')
    catalog = add(f'<< /Type /Catalog /Pages {parent} 0 R >>')
    out = bytearray(b'%PDF-1.5\n')
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b'%d 0 obj\n%s\nendobj\n' % (number, body)
    table = len(out)
    out += b'xref\n0 %d\n0000000000 65535 f \n' % (len(objects) + 1)
    for place in places:
        out += b'%010d 00000 n \n' % place
    out += b'trailer\n<< /Size %d /Root %d 0 R >>\nstartxref\n%d\n%%%%EOF\n' % (len(objects) + 1, catalog, table)
    with open(path, 'wb') as file:
        file.write(out)


# --- the test program ---
class Tests:
    """Named tests as TAP; each gets a data folder of its own."""

    def __init__(self):
        self.tests = []

    def __call__(self, function):
        self.tests.append(function)
        return function

    def run(self):
        chosen = [test for test in self.tests if len(sys.argv) < 2 or test.__name__ in sys.argv[1:]]
        n_failed = 0
        print(f'1..{len(chosen)}', flush=True)
        for number, test in enumerate(chosen, 1):
            home = tempfile.mkdtemp(prefix='home-', dir=os.environ['XDG_DATA_HOME'])
            began = time.monotonic()
            result = 'not ok'
            try:
                test(home)
                result = 'ok'
            except (Failure, GLib.Error, subprocess.CalledProcessError, OSError) as error:
                n_failed += 1
                for line in f'{type(error).__name__}: {error}'.splitlines():
                    print(f'# {line}')
                try:
                    take_picture(f'failed-{test.__name__}')
                except (OSError, subprocess.CalledProcessError):
                    pass
            finally:
                for app in App.running:
                    app.kill()
                    if result != 'ok':
                        for line in app.log().splitlines()[-30:]:
                            print(f'# log: {line}')
                App.running.clear()
                shutil.rmtree(home, ignore_errors=True)
            print(f'{result} {number} - {test.__name__} ({time.monotonic() - began:.1f} s)', flush=True)
        return 1 if n_failed else 0
