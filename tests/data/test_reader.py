"""Files and what people put into them."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from groundstate.data import Schema, load, read, stream
from groundstate.data.tables.delimited import (
    FAST_FROM,
    find_layout,
    parse_fast,
    parse_reference,
    tidy,
)
from groundstate.errors import DataError

PENGUINS = """species,island,bill_length_mm,bill_depth_mm,flipper_length_mm,body_mass_g,sex
Adelie,Torgersen,39.1,18.7,181,3750,MALE
Adelie,Torgersen,39.5,17.4,186,3800,FEMALE
Adelie,Torgersen,,,,,
Chinstrap,Dream,46.5,17.9,192,3500,FEMALE
Gentoo,Biscoe,46.1,13.2,211,4500,FEMALE
Gentoo,Biscoe,50,16.3,230,5700,MALE
"""
WINE = """7,0.27,0.36,20.7,0.045,45,170,1.001,3,0.45,8.8,6
6.3,0.3,0.34,1.6,0.049,14,132,0.994,3.3,0.49,9.5,6
8.1,0.28,0.4,6.9,0.05,30,97,0.9951,3.26,0.44,10.1,6
7.2,0.23,0.32,8.5,0.058,47,186,0.9956,3.19,0.4,9.9,6
"""


@pytest.fixture
def write(tmp_path: Path):  # type: ignore[no-untyped-def]
    def make(content: str | bytes, name: str = "t.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


def test_header_and_missing_values(write) -> None:  # type: ignore[no-untyped-def]
    table = read(write(PENGUINS), target="species")
    assert table.n_rows == 6
    assert table.schema["bill_length_mm"].missing == 1
    assert table.schema["sex"].categories == ("FEMALE", "MALE")
    assert table.task == "classification"
    assert table.y.tolist()[-1] == "Gentoo"


def test_numbers_in_the_first_row_mean_no_header(write) -> None:  # type: ignore[no-untyped-def]
    table = read(write(WINE), target="last")
    assert table.n_rows == 4
    assert table.columns == tuple(f"x{i}" for i in range(12))
    assert table.target == "x11"
    assert table.notes == ("no header was found, so columns are called x0 to x11",)


def test_words_that_come_again_are_no_header(write) -> None:  # type: ignore[no-untyped-def]
    assert read(write("red,small\nblue,small\nred,large\n")).n_rows == 3
    table = read(write("colour,size\nblue,small\nred,large\nred,small\n"))
    assert (table.n_rows, table.columns) == (3, ("colour", "size"))


def test_header_can_be_forced(write) -> None:  # type: ignore[no-untyped-def]
    path = write("2019,2020\n1,2\n3,4\n")
    assert read(path).n_rows == 3
    assert read(path, header=True).columns == ("2019", "2020")
    assert read(write("a,b\nc,d\n"), header=False).n_rows == 2


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_are_found(write, separator: str) -> None:  # type: ignore[no-untyped-def]
    path = write(PENGUINS.replace(",", separator))
    assert read(path).frame.equals(read(write(PENGUINS, "u.csv")).frame)


def test_runs_of_blanks_separate_numbers(write) -> None:  # type: ignore[no-untyped-def]
    table = read(write("  1.0   2.0  7\n  1.5   2.25 8\n 10.0 -2.00 9\n", "housing.data"))
    assert table.matrix().tolist() == [[1, 2, 7], [1.5, 2.25, 8], [10, -2, 9]]


def test_decimal_comma_in_a_semicolon_file(write) -> None:  # type: ignore[no-untyped-def]
    table = read(write("preis;menge\n1,5;3\n1.234,25;4\n-0,5;5\n"))
    assert table.values("preis").tolist() == [1.5, 1234.25, -0.5]
    assert any("decimal comma" in note for note in table.notes)


def test_thousands_marks_in_a_comma_file(write) -> None:  # type: ignore[no-untyped-def]
    table = read(write('city,people\na,"1,234,567"\nb,"890"\nc,"12,000"\n'))
    assert table.values("people").tolist() == [1234567, 890, 12000]


def test_percent_and_currency(write) -> None:  # type: ignore[no-untyped-def]
    table = read(write('rate,price\n5%,"$1,200.50"\n7.5 %,$3\n10%,$4\n'))
    assert table.values("rate").tolist() == [5, 7.5, 10]
    assert table.values("price").tolist() == [1200.5, 3, 4]


def test_quotes_newlines_and_doubled_quotes(write) -> None:  # type: ignore[no-untyped-def]
    table = read(write('a,b\n1,"x, ""y""\nz"\n2,w\n'))
    assert table.frame["b"].to_list() == ['x, "y"\nz', "w"]


def test_a_stray_quote_is_a_character(write) -> None:  # type: ignore[no-untyped-def]
    table = read(write('size,n\n"5" pipe,1\n"6" pipe,2\n'))
    assert table.frame["size"].to_list() == ['"5" pipe', '"6" pipe']


@pytest.mark.parametrize(
    "encode",
    [
        lambda s: s.encode("utf-8-sig"),
        lambda s: s.encode("utf-16"),
        lambda s: s.encode("cp1252"),
        lambda s: s.replace("\n", "\r\n").encode(),
        lambda s: s.replace("\n", "\r").encode(),
        lambda s: b"\n\n" + s.encode() + b"\n\n\n",
        lambda s: b"sep=,\n" + s.encode(),
    ],
)
def test_encodings_and_line_ends(write, encode) -> None:  # type: ignore[no-untyped-def]
    text = "größe,ort\n1,Zürich\n2,Köln\n"
    table = read(write(encode(text)))
    assert table.columns == ("größe", "ort")
    assert table.frame["ort"].to_list() == ["Zürich", "Köln"]


def test_encoding_can_be_named(write) -> None:  # type: ignore[no-untyped-def]
    path = write("a,b\n1,ł\n".encode("iso8859_2"))
    assert read(path, encoding="iso8859_2").frame["b"].to_list() == ["ł"]
    with pytest.raises(DataError, match="not valid UTF-8"):
        read(path, encoding="utf-8")
    with pytest.raises(DataError, match="'klingon' is unknown"):
        read(path, encoding="klingon")


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        ("gz", gzip.compress),
        ("bz2", bz2.compress),
        ("xz", lzma.compress),
        ("zst", lambda raw: pa.compress(raw, codec="zstd", asbytes=True)),
    ],
)
def test_compressed_text(write, suffix, pack) -> None:  # type: ignore[no-untyped-def]
    table = read(write(pack(PENGUINS.encode()), f"t.csv.{suffix}"))
    assert table.frame.equals(read(write(PENGUINS)).frame)


def test_all_formats_give_the_same_table(write, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    frame = pl.read_csv(PENGUINS.encode())
    want = read(frame).frame
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_ipc(tmp_path / "t.arrow", compression="zstd")
    frame.write_ipc_stream(tmp_path / "t.arrows")
    frame.write_ndjson(tmp_path / "t.jsonl")
    rows = frame.to_dicts()
    (tmp_path / "t.json").write_text(json.dumps(rows, indent=1))
    (tmp_path / "columns.json").write_text(json.dumps(frame.to_dict(as_series=False)))
    (tmp_path / "pandas.json").write_text(frame.to_pandas().to_json())
    (tmp_path / "renamed.parquet").write_text(PENGUINS)
    for path in sorted(tmp_path.iterdir()):
        got = read(path).frame
        assert got.columns == want.columns, path.name
        assert got.cast(want.schema).equals(want), path.name  # type: ignore[arg-type]


def test_records_with_different_keys(write) -> None:  # type: ignore[no-untyped-def]
    table = read(write('{"a": 1}\n\n{"b": "x", "a": 2.5}\n{"a": null, "b": "y"}', "t.jsonl"))
    assert table.frame["a"].to_list() == [1.0, 2.5, None]
    assert table.frame["b"].to_list() == [None, "x", "y"]


def test_nested_columns_are_left_out_with_a_note(write) -> None:  # type: ignore[no-untyped-def]
    table = read(write('{"a": 1, "tags": [[1]]}\n{"a": 2, "tags": [[2, 3]]}', "t.jsonl"))
    assert table.columns == ("a",)
    assert "'tags'" in table.notes[0]


def test_duplicate_and_empty_names(write) -> None:  # type: ignore[no-untyped-def]
    table = read(write("a,a,,a_2\n1,2,3,4\n5,6,7,8\n"))
    assert table.columns == ("a", "a_3", "unnamed_2", "a_2")
    assert any("'a' → 'a_3'" in note for note in table.notes)


def test_row_names_as_r_writes_them(write) -> None:  # type: ignore[no-untyped-def]
    table = read(write("x,y\nanna,1,2\nbert,3,4\n", "t.txt"))
    assert table.columns == ("row", "x", "y")
    assert table.frame["row"].to_list() == ["anna", "bert"]


def test_trailing_separator_on_every_row(write) -> None:  # type: ignore[no-untyped-def]
    table = read(write("a,b\n1,2,\n3,4,\n"))
    assert table.columns[:2] == ("a", "b")
    assert table.values("b").tolist() == [2, 4]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "'t.csv' is empty"),
        ("\n\n", "'t.csv' is empty"),
        ("a,b\n", "but no row"),
        ("a,b\n1,2\n3\n", "line 3 of 't.csv' has 1 field where 2 are expected"),
        ("a,b\n1,2\n3,4,5\n", "line 3 of 't.csv' has 3 fields where 2 are expected"),
        ('a,b\n1,"2\n3\n', "line 3 of 't.csv' cannot be split"),
        (b"a,b\n1,\x002\n", "is not a text file"),
        (b"PAR1 but not really", "cannot be read as parquet"),
        (b"ARROW1 but not really", "cannot be read as arrow"),
        (b"PK\x03\x04 workbook", "Excel workbook or a zip"),
        (b"\x1f\x8b\x08 broken", "cannot be unpacked from gzip"),
        (b"\x28\xb5\x2f\xfd broken", "cannot be read as zst"),
        (b"\x93NUMPY", "numpy.load"),
        ('{"a": 1}\n{"a": ', "line 2 of 't.csv' is not valid JSON"),
        ('{"a": 1}\n[1]', "line 2 of 't.csv' is a JSON array"),
        ("[]", "empty array, not a table"),
        ('{"a": [1, 2], "b": [1]}', "differ in length"),
        ("[" * 100_000, "nested too deeply|not valid JSON"),
        ('[{"a": ' + "9" * 5000 + "}]", "not valid JSON"),
        ("," * 60_000, "60,001 columns"),
    ],
)
def test_bad_files_get_one_sentence(write, content, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DataError, match=message) as caught:
        read(write(content))
    assert "\n" not in str(caught.value)


def test_bad_paths_get_one_sentence(write, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    write(PENGUINS, "penguins.csv")
    for source, message in [
        (tmp_path / "pengiuns.csv", "did you mean 'penguins.csv'"),
        (tmp_path, "is a folder"),
        ("iriss", "did you mean 'iris'"),
        ("https://example.org/t.csv", "is an address"),
        ("a\0b", "NUL"),
        (7, "cannot read a int as a table"),
    ]:
        with pytest.raises(DataError, match=message):
            read(source)


def test_bad_arguments_get_one_sentence(write) -> None:  # type: ignore[no-untyped-def]
    path = write(PENGUINS)
    with pytest.raises(DataError, match="header must be"):
        read(path, header="perhaps")
    with pytest.raises(DataError, match="separator must be one plain character"):
        read(path, separator="::")
    with pytest.raises(DataError, match="schema must map"):
        read(path, schema=["numeric"])  # type: ignore[arg-type]
    with pytest.raises(DataError, match="no column 'sx' .did you mean 'sex'"):
        read(path, schema={"sx": "category"})
    with pytest.raises(DataError, match="kinds are 'numeric'"):
        read(path, schema={"sex": "gender"})
    with pytest.raises(DataError, match="no value of column 'sex' can be read as 'numeric'"):
        read(path, schema={"sex": "numeric"})


def test_a_builtin_name_is_a_source() -> None:
    assert read("iris").equals(load("iris"))
    assert read("iris", target=0).target == "sepal length (cm)"


def test_training_schema_reads_new_rows(write) -> None:  # type: ignore[no-untyped-def]
    train = read(write(PENGUINS), target="species")
    new = write(
        "sex,body_mass_g,island,colour,bill_length_mm,bill_depth_mm,flipper_length_mm\n"
        "MALE,heavy,Mars,red,40,17,190\n",
        "new.csv",
    )
    table = read(new, schema=train.schema)
    assert table.target is None
    assert table.columns == train.schema.features
    assert table.frame["body_mass_g"].to_list() == [None]
    assert any("'colour'" in note for note in table.notes)
    assert any("cannot be read as numeric" in note and "'heavy'" in note for note in table.notes)
    stored = Schema.from_dict(json.loads(json.dumps(train.schema.to_dict())))
    assert read(new, schema=stored).equals(table)
    with pytest.raises(DataError, match="lacks the columns 'island'"):
        read(
            write("sex,species\nMALE,a\nMALE,b\n", "less.csv"),
            schema=train.schema.select(["species", "island", "sex"]),
        )


@pytest.mark.parametrize(("text", "columns", "left_out"), [
    ("# from the lab, 2024\n# it's \"raw\n\na;b\n1;2\n3;4\n", ["a", "b"], "2 lines of comments"),
    ("#\n# a,b\n1,2\n3,4\n", ["a", "b"], "1 line of comments"),
    ("# a b\n1 2\n3 4\n", ["a", "b"], ""),
    ("##source=x\r\n#chrom\tpos\r\n1\t2\r\n3\t4\r\n", ["#chrom", "pos"], "1 line of comments"),
    ("#a,b\n1,2\n3,4\n", ["#a", "b"], ""),
    ("#tag,b\n#love,2\nlife,4\n", ["#tag", "b"], ""),
    ("# only one column\nx\n1\n3\n", ["x"], "1 line of comments"),
])  # fmt: skip
def test_comments_above_the_rows(write, text: str, columns: list[str], left_out: str) -> None:  # type: ignore[no-untyped-def]
    file = write(text, "t.csv")
    table = read(file)
    assert list(table.columns) == columns and table.n_rows == 2
    assert any(left_out in note for note in table.notes) == bool(left_out)
    (streamed,) = stream(file)
    assert streamed.frame.equals(table.frame)


def test_a_ragged_row_below_comments_is_named(write) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DataError, match="line 4 of 't.csv' has 3 fields"):
        read(write("# one\na,b\n1,2\n1,2,3\n4,5\n", "t.csv"))


def test_fast_parser_agrees_with_the_reference() -> None:
    lines = [f'{i},"a ""{i}"", b",{i / 7:.4f},{"" if i % 3 else "NA"}' for i in range(60_000)]
    raw = ("i,words,x,gap\r\n" + "\r\n".join(lines)).encode()
    assert len(raw) > FAST_FROM
    tidied, separator = tidy(raw, "auto")
    layout = find_layout(tidied, separator, "auto", frozenset({""}), "t")
    fast = parse_fast(tidied, layout)
    assert fast is not None
    assert fast.fill_null("").equals(parse_reference(tidied, layout, "t"))


def test_a_ragged_row_in_a_large_file_is_named(write) -> None:  # type: ignore[no-untyped-def]
    lines = ["a,b,c"] + ["1.25,2.5,three"] * 90_000
    lines[77_777] = "1,2"
    with pytest.raises(DataError, match="line 77778 of 't.csv' has 2 fields"):
        read(write("\n".join(lines)))


def test_large_file_with_blank_lines(write) -> None:  # type: ignore[no-untyped-def]
    body = "\n\n".join(["1.25,2.5,three"] * 90_000)
    assert read(write("a,b,c\n" + body)).n_rows == 90_000


def test_reading_does_not_depend_on_row_order(write) -> None:  # type: ignore[no-untyped-def]
    head, *rows = PENGUINS.splitlines()
    again = read(write("\n".join([head, *reversed(rows)])))
    assert again.schema == read(write(PENGUINS, "u.csv")).schema


def test_writing_and_reading_a_frame_is_the_identity(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "real": rng.normal(size=50),
            "whole": rng.integers(-9, 9, 50),
            "word": rng.choice(["a b", 'c"d', "e,f", "ü;"], 50),
            "truth": rng.random(50) < 0.5,
            "day": np.datetime64("2021-03-01") + rng.integers(0, 99, 50),
        }
    )
    buffer = io.BytesIO()
    frame.write_csv(buffer)
    (tmp_path / "t.csv").write_bytes(buffer.getvalue())
    assert read(tmp_path / "t.csv").frame.equals(read(frame).frame)
