#!/usr/bin/python3
"""The log writer of the whole program's tests: it fails on each kind of warning as the libraries print them,
planted here through GLib itself, and on nothing else.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import sys

from desktop import App, Failure, Tests, check, find_problems

# Prints one message through GLib's own writer, with the domain and level given; "" is no domain.
SPEAK = '''
import sys
from gi.repository import GLib
level = getattr(GLib.LogLevelFlags, "LEVEL_" + sys.argv[2])
GLib.log_default_handler(sys.argv[1] or None, level, sys.argv[3], None)
'''

tests = Tests()


def speak(home, domain, level, text='planted'):
    app = App('-c', SPEAK, domain, level, text, home=home, program='/usr/bin/python3')
    app.process.wait(30)
    check('planted' in app.log(), f'nothing was printed for {domain} {level}:\n{app.log()}')
    return app


@tests
def every_warning_fails(home):
    for domain in ('Gtk', 'keepsake-ui', 'GLib-GObject', 'Adwaita', ''):
        for level in ('WARNING', 'CRITICAL'):
            app = speak(home, domain, level)
            try:
                app.wait_end()
            except Failure as failure:
                check('planted' in str(failure), f'the failure does not show the warning: {failure}')
            else:
                raise Failure(f'a {level} of "{domain}" passed:\n{app.log()}')


@tests
def other_messages_pass(home):
    for level in ('MESSAGE', 'INFO'):
        app = App('-c', SPEAK, 'Gtk', level, 'planted WARNING in words', home=home, program='/usr/bin/python3',
                  env={'G_MESSAGES_DEBUG': 'all'})
        app.wait_end()
        check('planted' in app.log(), f'nothing was printed for {level}')


@tests
def sanitizers_fail(home):
    for line in ('ui/a.c:3:5: runtime error: signed integer overflow',
                 '==7==ERROR: AddressSanitizer: heap-use-after-free'):
        check(find_problems(f'before\n{line}\nafter\n') == [line], f'"{line}" passed')


sys.exit(tests.run())
