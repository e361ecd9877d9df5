"""DLPack with NumPy at the other end: arrays become tensors and tensors become arrays, around the same memory, and whoever holds it
last gives it back, once.

Usage: dlpack_test.py PREFIX BUILD SOURCE    needs a Python with NumPy 2.1 or newer: DTG_PYTHON, else the one that runs this
       dlpack_test.py --check NAME LIBRARY   one check, in such a Python
"""

import ctypes
import gc
import os
import pathlib
import subprocess
import sys
import threading

VERSIONED, PLAIN = b"dltensor_versioned", b"dltensor"
TYPES = ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "complex64",
         "complex128"]
CODES = {"UNIMPLEMENTED": 12, "INVALID_ARGUMENT": 3, "FAILED_PRECONDITION": 9}

python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Refused(Exception):
    """An error of the library: its code, then its message."""


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        for name, result in {"tensor_data": ctypes.c_void_p, "tensor_mutable_data": ctypes.c_void_p, "tensor_dim": ctypes.c_int64,
                             "tensor_rank": ctypes.c_size_t, "live_handles": ctypes.c_size_t, "error_message": ctypes.c_char_p,
                             "dtype_name": ctypes.c_char_p}.items():
            getattr(self.c, f"dtg_{name}").restype = result

    def call(self, name, *arguments):
        function = getattr(self.c, f"dtg_{name}")
        function.restype = ctypes.c_void_p
        error = function(*arguments)
        if error:
            told = (self.c.dtg_error_code(ctypes.c_void_p(error)), self.c.dtg_error_message(ctypes.c_void_p(error), None).decode())
            self.c.dtg_error_release(ctypes.c_void_p(error))
            raise Refused(*told)

    def take(self, array, form=VERSIONED):
        """The array's memory as a tensor; the capsule is marked as used only once the library has taken it."""
        capsule = array.__dlpack__(max_version=(1, 1)) if form == VERSIONED else array.__dlpack__()
        managed = ctypes.c_void_p(python.PyCapsule_GetPointer(capsule, form))
        out = ctypes.c_void_p()
        self.call("tensor_from_dlpack" + ("" if form == VERSIONED else "_unversioned"), managed, ctypes.byref(out))
        python.PyCapsule_SetName(capsule, USED[form])
        return Tensor(self, out)


# A capsule keeps the pointer to its name, so these must stay.
USED = {VERSIONED: b"used_dltensor_versioned", PLAIN: b"used_dltensor"}


class Tensor:
    """What np.from_dlpack asks of a producer, on one of our tensors."""

    def __init__(self, library, handle, form=VERSIONED, writable=True):
        self.library, self.handle, self.form, self.writable = library, handle, form, writable

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        managed = ctypes.c_void_p()
        if self.form == VERSIONED:
            self.library.call("tensor_to_dlpack", self.handle, int(self.writable), ctypes.byref(managed))
        else:
            self.library.call("tensor_to_dlpack_unversioned", self.handle, ctypes.byref(managed))
        return python.PyCapsule_New(managed, self.form, None)

    def data(self):
        return self.library.c.dtg_tensor_data(self.handle, None)

    def shape(self):
        c = self.library.c
        return tuple(c.dtg_tensor_dim(self.handle, ctypes.c_size_t(i)) for i in range(c.dtg_tensor_rank(self.handle)))

    def release(self):
        self.library.c.dtg_tensor_release(self.handle)


def refused(code, words, function):
    try:
        function()
    except Refused as error:
        assert error.args[0] == CODES[code] and words in error.args[1], error
        return
    raise AssertionError(f"accepted; expected {code} about {words}")


def arrays_come_in(np, library):
    for form in (VERSIONED, PLAIN):
        for name in TYPES:
            array = np.ones((3, 1, 4), dtype=name)
            held = sys.getrefcount(array)
            tensor = library.take(array, form)
            assert sys.getrefcount(array) == held + 1
            assert tensor.data() == array.ctypes.data and tensor.shape() == (3, 1, 4)
            assert library.c.dtg_dtype_name(library.c.dtg_tensor_dtype(tensor.handle)).decode() == name
            tensor.release()
            assert sys.getrefcount(array) == held, "the array is given back"


def odd_arrays_come_in(np, library):
    whole = np.arange(24, dtype="float32").reshape(4, 6)
    for array in (np.full((), 3.0), np.zeros((0, 5)), whole[1:3], whole[2:3, 1:4], np.ones((2,) * 8)):
        tensor = library.take(array)
        assert tensor.shape() == array.shape and (array.size == 0 or tensor.data() == array.ctypes.data)
        tensor.release()


def what_is_refused_stays_numpys(np, library):
    whole = np.arange(24, dtype="float32").reshape(4, 6)
    for array, code, words in ((whole.T, "INVALID_ARGUMENT", "ascontiguousarray"), (whole[:, ::2], "INVALID_ARGUMENT", "stride 2"),
                               (whole[::-1], "INVALID_ARGUMENT", "stride -6"), (np.broadcast_to(whole[0], (4, 6)), "INVALID_ARGUMENT", "stride 0"),
                               (np.ones((1,) * 9), "INVALID_ARGUMENT", "rank 9"),
                               (np.frombuffer(b"x" * 33, dtype="uint8")[1:].view("float32"), "INVALID_ARGUMENT", "aligned")):
        held = sys.getrefcount(array)
        refused(code, words, lambda array=array: library.take(array))
        gc.collect()
        assert sys.getrefcount(array) == held, "the capsule gave the array back, once"


def read_only_arrays(np, library):
    array = np.ones(5)
    array.flags.writeable = False
    tensor = library.take(array)
    assert library.c.dtg_tensor_mutable_data(tensor.handle) is None and tensor.data() == array.ctypes.data
    refused("FAILED_PRECONDITION", "read-only", lambda: np.from_dlpack(tensor))
    tensor.writable = False
    again = np.from_dlpack(tensor)
    tensor.release()
    assert not again.flags.writeable and again.ctypes.data == array.ctypes.data


def tensors_go_out(np, library):
    dims = (ctypes.c_int64 * 2)(3, 4)
    for form in (VERSIONED, PLAIN):
        for writable in (True, False):
            before = library.c.dtg_live_handles()
            handle = ctypes.c_void_p()
            library.call("tensor_allocate", 1, dims, ctypes.c_size_t(2), ctypes.byref(handle))
            tensor = Tensor(library, handle, form, writable)
            array = np.from_dlpack(tensor)
            assert array.ctypes.data == tensor.data() and array.shape == (3, 4) and array.dtype == np.float32
            if form == VERSIONED:
                assert array.flags.writeable == writable
            if array.flags.writeable:
                array[2, 3] = 7
                assert ctypes.cast(tensor.data(), ctypes.POINTER(ctypes.c_float))[11] == 7
            tensor.release()
            part = array[1:, 1:]
            del array
            assert library.c.dtg_live_handles() == before + 1 and part.sum() in (0, 7), "the array holds the tensor"
            del part
            assert library.c.dtg_live_handles() == before


def there_and_back(np, library):
    array = np.arange(6, dtype="int64")
    held = sys.getrefcount(array)
    tensor = library.take(array)
    again = np.from_dlpack(tensor)
    tensor.release()
    again[5] = 9
    assert array[5] == 9 and sys.getrefcount(array) == held + 1
    del again
    assert sys.getrefcount(array) == held


def from_another_thread(np, library):
    array = np.ones(100)
    held = sys.getrefcount(array)
    tensor = library.take(array)
    thread = threading.Thread(target=tensor.release)
    thread.start()
    thread.join()
    assert sys.getrefcount(array) == held


def many_do_not_grow(np, library):
    def pages():
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1])

    array, grown = np.ones(1000), []
    while len(grown) < 5 or max(grown[-2:]) >= 32:  # what leaks never comes to rest
        before = pages()
        for _ in range(5000):
            tensor = library.take(array)
            again = np.from_dlpack(tensor)
            tensor.release()
            del again
        grown.append(pages() - before)
        assert len(grown) <= 20, f"5000 after the other add pages without end: {grown}"


CHECKS = {function.__name__: function for function in (arrays_come_in, odd_arrays_come_in, what_is_refused_stays_numpys, read_only_arrays,
                                                       tensors_go_out, there_and_back, from_another_thread, many_do_not_grow)}


def check(name, path):
    import numpy

    library = Library(path)
    CHECKS[name](numpy, library)
    gc.collect()
    assert library.c.dtg_live_handles() == 0, f"{library.c.dtg_live_handles()} handles are left"


def main():
    import report

    results = report.Report("bindings_dlpack")
    judge = os.environ.get("DTG_PYTHON") or sys.executable
    probe = "import numpy; assert numpy.lib.NumpyVersion(numpy.__version__) >= '2.1.0'"
    if subprocess.run([judge, "-c", probe], check=False, capture_output=True).returncode != 0:
        results.skip("NumPy 2.1", "pip install -r tests/requirements.txt, and name that Python in DTG_PYTHON")
    for name in CHECKS:
        results.case(name.replace("_", " "), [judge, __file__, "--check", name, pathlib.Path(sys.argv[1]) / "lib" / "libdtg.so"], timeout=60)
    results.finish()


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        check(*sys.argv[2:])
    else:
        main()
