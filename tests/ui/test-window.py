#!/usr/bin/python3
"""A newcomer's path through the whole program with the real default model: the window opens ready, a PDF is
attached, a question asked, the gauge watched, the slider moved in the middle of the answer, the answer stopped
and made again, the session exported; the program is quit and opened again and the session goes on.

Pictures (light, dark, 360 px, memory panel) go to KS_SHOT_DIR.  KS_PROGRAM and KS_MODEL name the files.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import os
import re
import sys
import time

import desktop
from desktop import App, Tests, check, get_value, install_model, set_value, wait_for

GAUGE = re.compile(r'^Memory: [\d.]+.* of ')
STORY = 'Tell the story of this lighthouse in many long paragraphs, with every detail of the document.'
PAGES = [
    ['The Lighthouse of Norrsund', '', 'The lighthouse was built in 1874 by Ingrid Halvorsen.',
     'It is 41 metres high and has 197 steps.', 'Its lamp burns colza oil.'],
    ['The Keepers', '', 'The first keeper was Olaf Brandt, who served for 22 years.',
     'His cat was called Admiral.', 'The log book has 1,204 pages.'],
    ['The Storm', '', 'In the storm of 1903 the door was broken by the sea.',
     'The new door is made of oak from Gotland.', 'Nobody was hurt.'],
] + [[f'Appendix {n}', ''] + [f'Entry {n}.{i}: wind from the north, sea calm, lamp lit at dusk, oil used {i} litres.'
                              for i in range(1, 7)] for n in range(1, 6)]

tests = Tests()
send_buttons = {}  # of each run: looking through the whole window ten times a second would be work of its own
gauges = {}


def gauge_name(app):
    if app not in gauges:
        gauges[app] = app.wait(GAUGE)
    return desktop.name_now(gauges[app])


def ready(app):
    """The window is there, with the model."""
    app.wait('Message', interface='EditableText')
    app.wait(GAUGE, timeout=60)


def ask(app, text):
    desktop.type_into(app.wait('Message', interface='EditableText'), text)
    press_send(app, 'Send')


def press_send(app, name):
    wait_for(lambda: is_answering(app) == (name == 'Stop'), f'the button {name}')
    desktop.press(send_buttons[app])


def is_answering(app):
    """The composer's one button is Stop while an answer runs, else Send."""
    if app not in send_buttons:
        send_buttons[app] = app.wait(re.compile('^(Send|Stop)$'), interface='Action')
    return desktop.name_now(send_buttons[app]) == 'Stop'


def wait_answer(app, timeout=240):
    wait_for(lambda: not is_answering(app), 'the answer to end', timeout)


def paste_file(app, path):
    """As a file manager copies a file and the user pastes it."""
    offer = desktop.set_clipboard('text/uri-list', f'file://{path}\r\n'.encode())
    try:
        app.key('ctrl+l')
        app.key('ctrl+v')
        app.wait_text(re.escape(os.path.basename(path)))
    finally:
        offer.kill()
        offer.wait()


def has_answer(app, known):
    """Whether there is text in the window that was not there before, beside numbers and names."""
    new = set(app.text().splitlines()) - known
    return any(len(line) > 20 and not re.search('Reading|tokens|MiB|pages|GtkLabel|' + re.escape(STORY[:30]), line)
               for line in new)


def stream_until_stopped(app, known, first):
    """Watches the gauge while an answer streams, moves the slider, stops.  Returns the gauge's texts, with the first,
    from before the question: once memory is full, whole mebibytes may stand still."""
    seen = {first}
    wait_for(lambda: is_answering(app), 'the answer to start', 30)
    while not has_answer(app, known):
        check(is_answering(app), 'the answer ended before a word of it was seen')
        seen.add(gauge_name(app))
    app.picture('3-streaming')
    slider = app.wait('Memory target', interface='Value')
    before = get_value(slider)
    end = time.monotonic() + 60
    while is_answering(app) and len(seen) < 2 and time.monotonic() < end:
        seen.add(gauge_name(app))
        time.sleep(0.05)
    check(is_answering(app), 'the answer ended before the slider was moved')
    set_value(slider, before + 60)
    wait_for(lambda: gauge_name(app) not in seen, 'the gauge to show the new target', 10)
    check(is_answering(app), 'moving the slider ended the answer')
    check(get_value(slider) > before, 'the slider did not keep its value')
    press_send(app, 'Stop')
    wait_answer(app, 20)
    return seen


def export(app, path):
    """Ctrl+Shift+E; the file dialog is used by keyboard."""
    app.key('ctrl+shift+e')
    app.wait('Markdown')
    app.picture('7-export')
    windows = desktop.windows_of(app.process.pid)
    app.press(re.compile('Export…$'))
    wait_for(lambda: set(desktop.windows_of(app.process.pid)) - set(windows), 'the file dialog', 20)
    app.picture('7-export-file')
    app.key('ctrl+a')
    app.type(path)
    app.key('Return')
    wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > 0, f'{path} to be written', 20)


def allow_long_answers(home):
    """The story goes on until the test stops it, however fast the machine is."""
    folder = os.path.join(home, 'config', 'keepsake')
    os.makedirs(folder, mode=0o700)
    with open(os.path.join(folder, 'settings.ini'), 'w', encoding='utf-8') as file:
        file.write('[keepsake]\nmax-tokens=8000\n')


@tests
def newcomer(home):
    install_model(home)
    allow_long_answers(home)
    pdf = os.path.join(home, 'lighthouse.pdf')
    desktop.write_pdf(pdf, PAGES)
    app = App(home=home)
    ready(app)
    app.picture('1-ready')

    paste_file(app, pdf)
    app.wait_text(r'8 pages.*tokens')
    app.picture('2-attached')
    known = set(app.text().splitlines())
    first = gauge_name(app)
    ask(app, STORY)
    seen = stream_until_stopped(app, known, first)
    check(len(seen) >= 2, f'the gauge did not move while the answer streamed: {seen}')
    app.wait_text('(?i)stopped')
    app.picture('4-stopped')

    known = set(app.text().splitlines())
    app.key('ctrl+shift+r')
    wait_for(lambda: is_answering(app), 'the second answer to start', 20)
    while not has_answer(app, known):
        check(is_answering(app), 'the second answer ended before a word of it was seen')
    app.picture('5-answering')
    press_send(app, 'Stop')
    wait_answer(app)
    app.key('ctrl+m')
    app.wait(re.compile('Kept entries by layer and head'))
    app.picture('6-memory')
    app.key('ctrl+m')

    exported = os.path.join(home, 'story.md')
    export(app, exported)
    with open(exported, encoding='utf-8') as file:
        markdown = file.read()
    check(STORY in markdown, 'the export lacks the question')
    check('lighthouse.pdf' in markdown, 'the export lacks the document')
    app.quit()

    os.remove(pdf)  # what was attached is stored
    app = App(home=home)
    ready(app)
    app.wait_text(re.escape(STORY[:40]))
    app.wait_text('lighthouse.pdf')
    ask(app, 'Who was the first keeper?')
    wait_for(lambda: is_answering(app), 'the answer after the restart to start', 30)
    wait_answer(app)
    app.picture('8-reopened')
    app.quit()


@tests
def looks(home):
    """Dark, narrow, and the memory panel over the content: pictures, and everything can still be reached."""
    install_model(home)
    app = App(home=home, env={'ADW_DEBUG_COLOR_SCHEME': 'prefer-dark'})
    ready(app)
    ask(app, 'Say hello in one short sentence.')
    wait_for(lambda: is_answering(app), 'the answer to start', 30)
    wait_answer(app)
    app.key('ctrl+m')
    app.wait(re.compile('Kept entries by layer and head'))
    app.picture('9-dark')
    app.key('ctrl+m')
    desktop.resize_window(app.process.pid, 360, 640)
    app.wait('Message', interface='EditableText')
    app.picture('9-narrow')
    app.press(re.compile('^Memory: '))
    app.wait(re.compile('^Target: '))
    time.sleep(0.5)  # it fades in
    app.picture('9-narrow-gauge')
    app.key('Escape')
    app.quit()


def answering_app(home):
    install_model(home)
    app = App(home=home)
    ready(app)
    ask(app, 'Write a long story about a lighthouse.')
    wait_for(lambda: is_answering(app), 'the answer to start', 30)
    return app


@tests
def closed_while_loading(home):
    """The window goes while the model is still being read."""
    install_model(home)
    app = App(home=home)
    wait_for(lambda: desktop.windows_of(app.process.pid), 'the window')
    app.key('ctrl+w')
    app.wait_end()


@tests
def closed_while_answering(home):
    """What was written of the answer is stored, and is there again after the next start."""
    app = answering_app(home)
    time.sleep(1.5)
    app.key('ctrl+w')
    app.wait_end()
    app = App(home=home)
    ready(app)
    app.wait_text('Write a long story about a lighthouse')
    app.wait_text('(?i)stopped|interrupted')
    app.quit()


@tests
def closed_while_rereading(home):
    """A stored session is read again before it goes on; closing in the middle of that loses nothing."""
    app = answering_app(home)
    wait_answer(app)
    app.quit()
    app = App(home=home)
    ready(app)
    app.wait_text('Write a long story about a lighthouse')
    ask(app, 'And then?')
    app.wait_text('Reading')
    app.key('ctrl+w')
    app.wait_end()
    app = App(home=home)
    ready(app)
    app.wait_text('And then\\?')
    app.quit()


if __name__ == '__main__':
    sys.exit(tests.run())
