import fcntl, json, os, signal, sys, sysconfig
from importlib.util import find_spec

# Parts of the standard library that some builds of CPython do not have.
modules = {"bz2": "_bz2", "lzma": "_lzma", "sqlite3": "_sqlite3", "ssl": "_ssl", "zlib": "zlib"}
names = {
    os: ("copy_file_range", "eventfd", "getrandom", "memfd_create", "pidfd_open", "splice"),
    fcntl: ("F_ADD_SEALS",),
    signal: ("pidfd_send_signal",),
}
print(json.dumps({
    "implementation": sys.implementation.name,
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "ctypes": find_spec("_ctypes") is not None,
    "modules": [module for module, part in modules.items() if not find_spec(part)],
    "names": [f"{module.__name__}.{name}" for module, of in names.items() for name in of if not hasattr(module, name)],
    "libraries": [name for name in sys.argv[1:] if not find_spec(name)],
}))
