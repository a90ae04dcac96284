"""Writes what torch.save writes, without PyTorch: a zip of data.pkl and the elements beside it.

Python's own pickler does the list; stand-ins carry the names of PyTorch's classes and functions.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import collections
import io
import pickle
import struct
import zipfile

TYPES = {"F32": "FloatStorage", "F16": "HalfStorage", "BF16": "BFloat16Storage"}
SIZES = {"F32": 4, "F16": 2, "BF16": 2}


class Name:
    """Pickled as a name to be looked up: GLOBAL module name."""

    def __init__(self, module, name):
        self.module, self.name = module, name


class Call:
    """Pickled as a call of a name with arguments."""

    def __init__(self, name, *args):
        self.name, self.args = name, args


class Storage:
    def __init__(self, key, kind, n_elem):
        self.key, self.kind, self.n_elem = key, kind, n_elem


REBUILD = Name("torch._utils", "_rebuild_tensor_v2")
PARAMETER = Name("torch._utils", "_rebuild_parameter")


class Pickler(pickle._Pickler):  # the one in Python, which can be told how to write a name
    def persistent_id(self, obj):
        if isinstance(obj, Storage):
            return ("storage", Name("torch", TYPES[obj.kind]), obj.key, "cpu", obj.n_elem)
        return None

    def save(self, obj, save_persistent_id=True):
        if isinstance(obj, Name):
            if self.proto >= 4:
                super().save(obj.module)
                super().save(obj.name)
                self.write(pickle.STACK_GLOBAL)
            else:
                self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        elif isinstance(obj, Call):
            self.save(obj.name)
            self.save(obj.args)
            self.write(pickle.REDUCE)
        else:
            super().save(obj, save_persistent_id)


def dump(obj, protocol=2):
    out = io.BytesIO()
    Pickler(out, protocol).dump(obj)
    return out.getvalue()


def strides_of(shape):
    strides, step = [], 1
    for n in reversed(shape):
        strides.insert(0, step)
        step *= n
    return tuple(strides)


def tensor(key, kind, shape, n_elem=None, offset=0, strides=None):
    """A call that makes a tensor over the storage of that key."""
    count = 1
    for n in shape:
        count *= n
    return Call(REBUILD, Storage(key, kind, count if n_elem is None else n_elem), offset, tuple(shape),
                strides_of(shape) if strides is None else strides, False, collections.OrderedDict())


def encode(values, kind):
    if kind == "F32":
        return struct.pack(f"<{len(values)}f", *values)
    if kind == "F16":
        return struct.pack(f"<{len(values)}e", *values)
    return b"".join(struct.pack("<f", v)[2:] for v in values)  # cut towards zero


def archive(pickled, storages, folder="trimkv_weights", order="little", method=zipfile.ZIP_STORED):
    """The zip; storages: key -> bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        file.writestr(folder + "/data.pkl", pickled)
        if order is not None:
            file.writestr(folder + "/byteorder", order)
        for key, data in storages.items():
            file.writestr(f"{folder}/data/{key}", data)
        file.writestr(folder + "/version", "3\n")
    return out.getvalue()


def save(tensors, kind="F32", protocol=2, parameters=False, **more):
    """tensors: name -> (shape, values), as torch.save of a state dictionary writes them."""
    calls, storages = collections.OrderedDict(), {}
    for i, (name, (shape, values)) in enumerate(tensors.items()):
        call = tensor(str(i), kind, shape)
        calls[name] = Call(PARAMETER, call, True, collections.OrderedDict()) if parameters else call
        storages[str(i)] = encode(values, kind)
    return archive(dump(calls, protocol), storages, **more)
