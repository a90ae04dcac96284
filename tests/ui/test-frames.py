#!/usr/bin/python3
"""The window never stands still: while an answer streams and the slider is moved all the time, 99.9% of the
frames come within 50 ms of the one before, and none later than 150 ms.

On a machine with other work a run may fail by that work: the best of KS_N_RUN (3) counts, and a run that
fails is held against an empty window that draws while threads compute, measured right behind it: twice its
late frames are allowed.  Where that window has none, the limits hold as they stand.  All is printed.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import importlib
import math
import os
import sys
import time

from desktop import App, Failure, Tests, check, get_value, install_model, set_value, wait_for

window = importlib.import_module('test-window')

ORDINARY_US = 50_000
LONGEST_US = 150_000
SHARE = 0.999
MOVES_PER_S = 30
MEASURED_S = float(os.environ.get('KS_MEASURED_S', '15'))

tests = Tests()


def move_slider(app, slider, seconds):
    """Moves it to and fro while the answer streams; asks again when the answer is at its end."""
    middle = get_value(slider)
    end = time.monotonic() + seconds
    i = 0
    while time.monotonic() < end:
        set_value(slider, middle + 60 + 50 * math.sin(i / 10))
        i += 1
        time.sleep(1 / MOVES_PER_S)


def measure(home, path):
    """(begin, end) of each stretch in which the answer streamed and the slider moved, by the test's clock."""
    app = App(home=home, env={'KEEPSAKE_FRAME_LOG': path})
    window.ready(app)
    app.key('ctrl+m')  # the panel moves as well
    slider = app.wait('Memory target', interface='Value')
    stretches = []
    left = MEASURED_S
    while left > 0:
        window.ask(app, 'Write a very long story about a lighthouse, with many chapters and lists.')
        wait_for(lambda: window.is_answering(app), 'the answer to start', 30)
        began = time.monotonic()
        while left > 0 and window.is_answering(app):
            move_slider(app, slider, 1.0)
            if window.is_answering(app):
                left -= time.monotonic() - began
                stretches.append((began, time.monotonic()))
            began = time.monotonic()
        if window.is_answering(app):
            window.press_send(app, 'Stop')
            window.wait_answer(app, 30)
    app.quit()
    return stretches


def read_frames(path, stretches):
    frames = []
    with open(path, encoding='utf-8') as file:
        for line in file:
            if line.startswith('frame '):
                begin, interval, paint = map(int, line.split()[1:])
                if any(a <= begin / 1e6 <= b for a, b in stretches):
                    frames.append((interval, paint, begin))
    return frames


def measure_empty(home, path):
    """The share of late frames and the longest interval of the empty window beside busy threads."""
    app = App(home=home, program=os.environ['KS_EMPTY_WINDOW'],
              env={'KEEPSAKE_FRAME_LOG': path, 'GTK_A11Y': 'none', 'KS_BUSY_THREADS': str(os.cpu_count())})
    time.sleep(2)  # its start does not count
    began = time.monotonic()
    time.sleep(MEASURED_S)
    ended = time.monotonic()
    app.process.terminate()
    app.wait_end()
    intervals = [interval for interval, _, _ in read_frames(path, [(began, ended)])]
    check(len(intervals) > 5 * MEASURED_S, f'the empty window drew only {len(intervals)} frames')
    n_slow = sum(interval > ORDINARY_US for interval in intervals)
    print(f'# empty window: {len(intervals)} frames, {n_slow} over 50 ms, longest {max(intervals) / 1000:.0f} ms, '
          f'load {os.getloadavg()[0]:.1f}', flush=True)
    return n_slow / len(intervals), max(intervals)


def judge(frames, late_share=0.0, longest_us=0):
    """A sentence, and whether it is good, beside an empty window with this share of late frames."""
    intervals = sorted(interval for interval, _, _ in frames)
    n_slow = sum(interval > ORDINARY_US for interval in intervals)
    n_most = math.floor(len(intervals) * max(1 - SHARE, 2 * late_share))
    words = (f'{len(intervals)} frames, {n_slow} over 50 ms ({n_most} allowed), longest {intervals[-1] / 1000:.0f} ms, '
             f'median {intervals[len(intervals) // 2] / 1000:.1f} ms, longest paint '
             f'{max(paint for _, paint, _ in frames) / 1000:.0f} ms, load {os.getloadavg()[0]:.1f}')
    return words, n_slow <= n_most and intervals[-1] <= max(LONGEST_US, 2 * longest_us)


@tests
def frames_while_streaming(home):
    install_model(home)
    for run in range(int(os.environ.get('KS_N_RUN', '3'))):
        path = os.path.join(home, f'frames-{run}')
        frames = read_frames(path, measure(home, path))
        check(len(frames) > 20 * MEASURED_S, f'only {len(frames)} frames in {MEASURED_S} s')
        words, good = judge(frames)
        print(f'# {words}', flush=True)
        for interval, paint, begin in sorted(frames, reverse=True)[:5]:
            print(f'#   {interval / 1000:.1f} ms, painted in {paint / 1000:.1f} ms, at {begin / 1e6:.3f}')
        if good:
            return
        words, good = judge(frames, *measure_empty(home, path + '-empty'))
        print(f'# beside the empty window: {words}')
        if good:
            return
    raise Failure('too many late frames in every run')


if __name__ == '__main__':
    sys.exit(tests.run())
