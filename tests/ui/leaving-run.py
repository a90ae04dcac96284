#!/usr/bin/python3
"""Stands for a run of the program that ends: owns its name, answers the first question of a new start, and gives
the name away before the start's wish can come.  Prints "ready" when the name is owned."""
# SPDX-License-Identifier: GPL-3.0-or-later
import gi

gi.require_version("Gio", "2.0")
from gi.repository import Gio, GLib  # noqa: E402

NAME = "org.keepsake.Keepsake"
ACTIONS = """<node><interface name="org.gtk.Actions">
  <method name="DescribeAll"><arg type="a{s(bgav)}" direction="out"/></method>
</interface></node>"""


def bus_call(bus, method, *arguments):
    bus.call_sync("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", method,
                  GLib.Variant(*arguments), None, Gio.DBusCallFlags.NONE, -1, None)


def describe_cb(bus, sender, path, interface, method, arguments, invocation):
    bus_call(bus, "ReleaseName", "(s)", (NAME,))
    invocation.return_value(GLib.Variant("(a{s(bgav)})", ({},)))
    bus.flush_sync(None)
    loop.quit()


loop = GLib.MainLoop()
session = Gio.bus_get_sync(Gio.BusType.SESSION, None)
session.register_object("/org/keepsake/Keepsake", Gio.DBusNodeInfo.new_for_xml(ACTIONS).interfaces[0], describe_cb,
                        None, None)
bus_call(session, "RequestName", "(su)", (NAME, 4))
print("ready", flush=True)
loop.run()
