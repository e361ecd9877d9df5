"""Arrow with pyarrow at the other end: its tables, and what it reads of Parquet files, become data sets through the C data interface.

Usage: arrow_test.py PREFIX BUILD SOURCE     needs a Python with pyarrow: DTG_PYTHON, else the one that runs this
       arrow_test.py --check NAME LIBRARY    one check, in such a Python
"""

import ctypes
import gc
import os
import pathlib
import random
import subprocess
import sys
import tempfile

MISSING_DROP, MISSING_KEEP, MISSING_MEAN = 1, 3, 4
CODES = {"UNIMPLEMENTED": 12, "NOT_FOUND": 5, "DATA_LOSS": 15}
STRLEN = ctypes.c_size_t(-1).value


class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("label", ctypes.c_char_p), ("label_len", ctypes.c_size_t),
                ("columns", ctypes.c_void_p), ("num_columns", ctypes.c_size_t), ("missing", ctypes.c_int32), ("reserved0", ctypes.c_int32),
                ("schema", ctypes.c_char_p), ("schema_len", ctypes.c_size_t)]


class Refused(Exception):
    """An error of the library: its code, then its message."""


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        for name, result in {"tensor_data": ctypes.c_void_p, "tensor_count": ctypes.c_int64, "live_handles": ctypes.c_size_t,
                             "error_message": ctypes.c_char_p, "dtype_name": ctypes.c_char_p, "dataset_component_count": ctypes.c_size_t}.items():
            getattr(self.c, f"dtg_{name}").restype = result

    def call(self, name, *arguments):
        function = getattr(self.c, f"dtg_{name}")
        function.restype = ctypes.c_void_p
        error = function(*arguments)
        if error:
            told = (self.c.dtg_error_code(ctypes.c_void_p(error)), self.c.dtg_error_message(ctypes.c_void_p(error), None).decode())
            self.c.dtg_error_release(ctypes.c_void_p(error))
            raise Refused(*told)

    def take(self, reader, **options):
        stream = ctypes.create_string_buffer(5 * ctypes.sizeof(ctypes.c_void_p))
        reader._export_to_c(ctypes.addressof(stream))
        data = ctypes.c_void_p()
        how = Options(ctypes.sizeof(Options), None, STRLEN, None, 0, 0, 0, None, STRLEN)
        for name, value in options.items():
            setattr(how, name, value)
        self.call("dataset_arrow", None, stream, ctypes.byref(how), ctypes.byref(data))
        return data

    def rows(self, np, data):
        """All elements, as lists of arrays; the data set is released."""
        count = self.c.dtg_dataset_component_count(data)
        tensors, more, out = (ctypes.c_void_p * count)(), ctypes.c_int32(), []
        while True:
            self.call("dataset_next", data, tensors, ctypes.c_size_t(count), ctypes.byref(more))
            if not more.value:
                break
            row = []
            for tensor in map(ctypes.c_void_p, tensors):
                dtype = np.dtype(self.c.dtg_dtype_name(self.c.dtg_tensor_dtype(tensor)).decode())
                elements = self.c.dtg_tensor_count(tensor)
                row.append(np.frombuffer(ctypes.string_at(self.c.dtg_tensor_data(tensor, None), elements * dtype.itemsize), dtype=dtype).copy())
                self.c.dtg_tensor_release(tensor)
            out.append(row)
        self.c.dtg_dataset_release(data)
        return out


def refused(code, words, function):
    try:
        function()
    except Refused as error:
        assert error.args[0] == CODES[code] and words in error.args[1], error
        return
    raise AssertionError(f"accepted; expected {code} about {words}")


def numbers_of_every_type(pa, np, library):
    draw = random.Random(1)
    for kind in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64", "bool"):
        whole = [draw.randrange(2 if kind == "bool" else 100) for _ in range(50)]
        table = pa.table({"x": pa.array(np.array(whole, dtype=kind))})
        pieces = pa.concat_tables([table.slice(9), table.slice(0, 3)])
        for reader, wanted in ((table.to_reader(), whole), (table.slice(7, 20).to_reader(), whole[7:27]), (pieces.to_reader(5), whole[9:] + whole[:3])):
            got = library.rows(np, library.take(reader))
            assert got[0][0].dtype == np.dtype(kind), (kind, got[0][0].dtype)
            assert [row[0][0] for row in got] == wanted, kind


def memory_goes_back(pa, np, library):
    before = pa.total_allocated_bytes()
    table = pa.table({"x": pa.array(list(range(100000))), "y": pa.array(["a", "b"] * 50000)})
    held = pa.total_allocated_bytes()
    data = library.take(table.to_reader())
    del table
    gc.collect()
    assert held > before and pa.total_allocated_bytes() >= before + 700000, "the numbers are in use where they lie"
    library.c.dtg_dataset_release(data)
    gc.collect()
    assert pa.total_allocated_bytes() == before, "all was given back"


def missing_values_and_names(pa, np, library):
    table = pa.table({"x": pa.array([1, None, 3], pa.int16()), "y": pa.array(["b", "a", None]), "z": pa.array(["v", "u", "v"]).dictionary_encode(),
                      "w": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.float32(), 2))})
    refused("DATA_LOSS", 'row 1 has no value in column "x"', lambda: library.take(table.to_reader()))
    kept = library.rows(np, library.take(table.to_reader(), missing=MISSING_KEEP))
    assert [row[1][0] for row in kept] == [1, 0, -1] and np.isnan(kept[1][0][0]) and kept[0][0].dtype == np.float32
    assert [row[2][0] for row in kept] == [1, 0, 1] and kept[1][3].tolist() == [3, 4]
    assert len(library.rows(np, library.take(table.to_reader(), missing=MISSING_DROP))) == 1
    labelled = library.rows(np, library.take(table.select(["x", "w", "z"]).to_reader(), missing=MISSING_MEAN, label=b"z"))
    assert [row[0].tolist() for row in labelled] == [[1, 1, 2], [2, 3, 4], [3, 5, 6]] and [row[1][0] for row in labelled] == [1, 0, 1]


def what_is_refused(pa, np, library):
    for column in (pa.array([[1], [2, 3]]), pa.array([1, 2], pa.date32()), pa.array([b"x", b"y"]), pa.array([{"a": 1}, {"a": 2}]),
                   pa.array(["x", "y"], pa.string_view()), pa.array([1, 2], pa.timestamp("s"))):
        refused("UNIMPLEMENTED", '"x"', lambda column=column: library.take(pa.table({"x": column}).to_reader()))
    refused("NOT_FOUND", "label", lambda: library.take(pa.table({"x": [1]}).to_reader(), label=b"y"))

    def rows():
        yield pa.record_batch({"x": [1, 2]})
        raise ValueError("the well is dry")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"x": pa.int64()}), rows())
    refused("DATA_LOSS", "the well is dry", lambda: library.take(reader))


def a_parquet_file(pa, np, library):
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "rows.parquet"
        pq.write_table(pa.table({"x": np.arange(1000, dtype="float32"), "name": [f"n{i % 7}" for i in range(1000)]}), path, row_group_size=300)
        with pq.ParquetFile(path) as file:
            reader = pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches(batch_size=128))
            got = library.rows(np, library.take(reader))
    assert [row[0][0] for row in got] == list(range(1000)) and [row[1][0] for row in got] == [i % 7 for i in range(1000)]


CHECKS = {function.__name__: function for function in (numbers_of_every_type, memory_goes_back, missing_values_and_names, what_is_refused, a_parquet_file)}


def check(name, path):
    import numpy
    import pyarrow

    library = Library(path)
    CHECKS[name](pyarrow, numpy, library)
    gc.collect()
    assert library.c.dtg_live_handles() == 0, f"{library.c.dtg_live_handles()} handles are left"


def main():
    import report

    results = report.Report("bindings_arrow")
    judge = os.environ.get("DTG_PYTHON") or sys.executable
    if subprocess.run([judge, "-c", "import pyarrow, numpy"], check=False, capture_output=True).returncode != 0:
        results.skip("pyarrow", "pip install -r tests/requirements.txt, and name that Python in DTG_PYTHON")
    for name in CHECKS:
        results.case(name.replace("_", " "), [judge, __file__, "--check", name, pathlib.Path(sys.argv[1]) / "lib" / "libdtg.so"], timeout=60)
    results.finish()


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        check(*sys.argv[2:])
    else:
        main()
