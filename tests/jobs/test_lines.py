"""line_of: the line of a key, of a table, of an entry in a list."""

from __future__ import annotations

import tomllib

import pytest

from taciturn.jobfile.toml_files import line_of

TEXT = """\
# a comment with [brackets] and key = 1
name = "x # y"
epsilon = 1.0

[label]
column = "a = b"
classes = ["[no", "yes"]

[[sites]]
name = "north"
[[sites]]
"name" = "south"
[schema]
note = 'it"s ['
fields = [
  { name = "age", low = 0, high = 1 },   # one
  { name = "sex", values = ["f", "m"] },

  { name = "x", low = 0, high = 1 },

]
query = '''
epsilon = 2
[label]
'''
after = 1
table.inner = [[1, 2],
  [3, { x = "]" }]]
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("name",), 2),
        (("epsilon",), 3),
        (("label",), 5),
        (("label", "classes", 0), 7),
        (("label", "scale"), 5),
        (("sites",), 9),
        (("sites", 0), 9),
        (("sites", 1), 11),
        (("sites", 1, "name"), 12),
        (("sites", 1, "data"), 11),
        (("schema", "fields"), 15),
        (("schema", "fields", 0, "low"), 16),
        (("schema", "fields", 1), 17),
        (("schema", "fields", 2, "high"), 19),
        (("schema", "query"), 22),
        (("schema", "after"), 26),
        (("schema", "table", "inner", 0, 1), 27),
        (("schema", "table", "inner", 1, 1, "x"), 28),
        (("delta",), None),
    ],
)
def test_the_line_of_a_key(path, line):
    tomllib.loads(TEXT)
    assert line_of(TEXT, path) == line


def test_the_line_of_a_key_after_long_texts_and_lists_is_found_with_few_reads(monkeypatch):
    codes = "".join(f'  "{k}",\n' for k in range(2000))
    text = f'values = [\n{codes}]\nquery = """\n' + "a [\n" * 3000 + '""""\nlast = [1, {x = [\n2]}]\n'
    reads = []
    loads = tomllib.loads
    monkeypatch.setattr(tomllib, "loads", lambda start: reads.append(start) or loads(start))
    found = [line_of(text, path) for path in (("values", 1500), ("query",), ("last", 0), ("last", 1, "x", 0))]
    assert found == [1502, 2003, 5005, 5006]
    assert len(reads) <= 4 * 15  # a search among 5006 lines halves them 13 times
