"""Rows from a database: one snapshot, read once, and neither the query nor the connection is ever shown."""

import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import pytest

from taciturn.cli.app import run
from taciturn.core.errors import DataError, WrongFiles
from taciturn.data.tables.sql_tables import TableQuery
from taciturn.jobfile.job_rows import TableFile
from taciturn.sites.files.rows import load_rows

sqlalchemy = pytest.importorskip("sqlalchemy")
SECRET = "hunter2"


@pytest.fixture
def database(tmp_path):
    """An SQLite file with the table of a clinic."""
    with closing(sqlite3.connect(tmp_path / "clinic.db")) as db:
        db.execute("CREATE TABLE visits (age REAL, sex TEXT, income TEXT)")
        rows = [(50, "f", "high"), (200, "m", "low"), (None, "f", "high"), (30, "x", None), (20, "m", "high")]
        db.executemany("INSERT INTO visits VALUES (?, ?, ?)", rows)
        db.commit()
    return tmp_path / "clinic.db"


def test_a_query_is_a_table(database):
    query = TableQuery(f"sqlite:///{database.name}", "SELECT age, sex FROM visits", database.parent)
    assert query.columns == {"age": (50.0, 200.0, None, 30.0, 20.0), "sex": ("f", "m", "f", "x", "m")}
    assert (
        repr(query) == f"TableQuery(folder={database.parent!r})" and str(query) == "the query in `database`"
    )


def test_rows_are_read_once(database):
    query = TableQuery(f"sqlite:///{database}", "SELECT age FROM visits")
    assert len(query.columns["age"]) == 5
    with closing(sqlite3.connect(database)) as db:
        db.execute("DELETE FROM visits")
        db.commit()
    assert len(query.columns["age"]) == 5


@pytest.mark.parametrize(
    ("url", "query", "what"),
    [
        ("sqlite:///nowhere.db", "SELECT 1 AS hunter2", "there is no such SQLite file"),
        ("hunter2", "SELECT 1", "needs a `url` such as postgresql"),
        ("hunter2://nobody", "SELECT 1", "(NoSuchModuleError)"),
        ("sqlite:///clinic.db", "SELECT hunter2 FROM visits", "refused the query"),
        ("sqlite:///clinic.db", "DELETE FROM visits /* hunter2 */", "the query in `database`"),
        ("sqlite:///clinic.db", "SELECT age, age FROM visits", "must return each column once"),
        ("sqlite:///clinic.db", "SELECT age FROM visits WHERE age > 999", "`database` has no rows"),
        ("postgresql+psycopg://u:hunter2@127.0.0.1:1/x", "SELECT 1", "refused the connection"),
    ],
)
def test_an_error_shows_neither_query_nor_connection(database, url, query, what):
    table = TableQuery(url, query, database.parent)
    with pytest.raises(DataError) as refused:
        TableFile(None, table).read([])
    chain, error = [], refused.value
    while error is not None:
        chain.append(str(error))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert what in chain[0]
    assert not any(SECRET in text or "visits" in text or "127.0.0.1" in text for text in chain)
    with closing(sqlite3.connect(database)) as db:
        assert db.execute("SELECT count(*) FROM visits").fetchone() == (5,)


def test_locked_or_lost_sqlite_file_and_a_lost_column_get_one_clear_line(database, monkeypatch):
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **more: connect(*args, **{"timeout": 0.01} | more))
    query = TableQuery(f"sqlite:///{database}", "SELECT age FROM visits")
    with closing(connect(database)) as db:
        db.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DataError, match=r"locked by another program; run again .* \(OperationalError\)"):
            TableFile(None, query).read(["age"])
    with pytest.raises(DataError, match=r"the query in `database` lacks the column sex\."):
        TableFile(None, query).read(["sex"])
    later = TableQuery(f"sqlite:///{database}", "SELECT age FROM visits")
    assert later.fingerprint
    database.unlink()
    with pytest.raises(DataError, match="refused the connection"):
        TableFile(None, later).read(["age"])


def test_a_site_reads_its_rows_from_a_database(tmp_path, database, capsys):
    """The numbers equal those from a CSV file; url, query and password appear nowhere."""
    from sites.state.test_account import edit
    from support.sitework import SCHEMA, network, shards, table

    text = "age,sex,income\n50,f,high\n200,m,low\n,f,high\n30,x,\n20,m,high\n20,m,high\n"
    expected = load_rows(table(tmp_path / "csv", text))
    with closing(sqlite3.connect(database)) as db:
        db.execute("INSERT INTO visits VALUES (20, 'm', 'high')")
        db.commit()
    job = {"schema": SCHEMA, "label": {"column": "income", "positive": "high"}, "C": 1.0, "dimension": None}
    paths = network(tmp_path / "sql", [(0, 1)], data=shards(2, rows=6), job=job | {"intercept": False})
    facts = {"url": f"sqlite:///{database}", "query": f"SELECT * FROM visits -- {SECRET}"}
    site = edit(paths[0], data=None, database=facts)
    for mine, theirs in zip(load_rows(site), expected, strict=True):
        assert mine.tolist() == theirs.tolist()
    assert SECRET not in repr(site.file) + repr(site.rows)
    run(["site", "check", str(paths[0]), "--wait", "0"])
    said = capsys.readouterr()
    assert "data: 6 rows" in said.out and SECRET not in said.out + said.err
    with pytest.raises(WrongFiles, match=r"give either `data` \(a file\) or `database`"):
        edit(paths[0], data="rows.npz")


def test_a_training_job_reads_its_rows_from_a_database(tmp_path, database, capsys):
    schema = '[schema]\nfields = [{ name = "age", low = 0, high = 100 }]\n'
    sites = '[[sites]]\nname = "south"\n[[sites]]\nname = "north"\n'
    job = 'format = 2\nkind = "train"\nname = "t"\nepsilon = 1.0\ncolluding = 1\nmethod = "masked"\n'
    job += 'label = { column = "income", positive = "high" }\n'
    (tmp_path / "job.toml").write_text(job + schema + sites)
    source = f'{{ database = {{ url = "sqlite:///clinic.db", query = "SELECT * FROM visits -- {SECRET}" }} }}'
    (tmp_path / "owner.toml").write_text(f"[rows]\nsouth = {source}\nnorth = {source}\n")
    assert run(["check", str(tmp_path / "job.toml")]) == 1
    assert SECRET not in (err := capsys.readouterr().err) and "must differ from the rows of" in err
    other = source.replace("SELECT *", "SELECT age, income")
    (tmp_path / "owner.toml").write_text(f"[rows]\nsouth = {source}\nnorth = {other}\n")
    assert run(["check", str(tmp_path / "job.toml")]) in (0, 1)
    said = capsys.readouterr()
    assert "5 rows" in said.out and SECRET not in said.out + said.err


# -- PostgreSQL ---------------------------------------------------------------------------------------


def tool(name: str) -> str | None:
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name)


@pytest.fixture(scope="module")
def postgres():
    """A private server on a unix socket, as a user that is not root; its url."""
    pytest.importorskip("psycopg")
    if tool("initdb") is None or tool("pg_ctl") is None:
        pytest.skip("PostgreSQL is not here: apt-get install postgresql")
    user = {}
    if os.geteuid() == 0:
        try:
            entry = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user `postgres`")
        user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    folder = Path(tempfile.mkdtemp(prefix="taciturn-pg-", dir="/tmp"))
    if user:
        os.chown(folder, user["user"], user["group"])
    options = {"capture_output": True, "check": True, "cwd": folder} | user
    data, settings = str(folder / "data"), f"-k {folder} -c listen_addresses='' -c fsync=off"
    subprocess.run([tool("initdb"), "-D", data, "-A", "trust", "-U", "clinic"], **options)
    start = [tool("pg_ctl"), "-D", data, "-w", "-o", settings, "-l", str(folder / "log"), "start"]
    options = options | {"capture_output": False, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(start, **options)
    try:
        yield f"postgresql+psycopg://clinic@/postgres?host={folder}"
    finally:
        subprocess.run([tool("pg_ctl"), "-D", data, "-m", "immediate", "stop"], **options)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.process
def test_rows_of_a_postgresql_server_are_read_in_one_snapshot(postgres):
    """Another connection changes rows while the query is read in two parts."""
    import psycopg

    plain = postgres.replace("+psycopg", "")
    with psycopg.connect(plain, autocommit=True) as db:
        db.execute("CREATE TABLE visits (age numeric, sex text, seen boolean)")
        db.execute("INSERT INTO visits SELECT g, 'f', true FROM generate_series(1, 50) g")
    assert TableQuery(postgres, "SELECT age, sex FROM visits ORDER BY age").columns == {
        "age": tuple(float(k) for k in range(1, 51)),
        "sex": ("f",) * 50,
    }
    looks = "SELECT (SELECT count(*) FROM visits) AS a, pg_sleep(0.5), (SELECT count(*) FROM visits) AS b"
    query, found = TableQuery(postgres, looks.replace("pg_sleep(0.5)", "pg_sleep(0.5)::text AS s")), []
    reader = threading.Thread(target=lambda: found.append(query.columns))
    reader.start()
    with psycopg.connect(plain, autocommit=True) as db:
        db.execute("INSERT INTO visits VALUES (99, 'm', false)")
    reader.join()
    assert found[0]["a"] == found[0]["b"]
    levels = TableQuery(postgres, "SELECT current_setting('transaction_isolation') AS level").columns
    assert levels == {"level": ("repeatable read",)}


@pytest.mark.process
def test_a_query_cannot_write_to_a_postgresql_server(postgres):
    import psycopg

    plain = postgres.replace("+psycopg", "")
    with psycopg.connect(plain, autocommit=True) as db:
        db.execute("CREATE TABLE kept (k int)")
    with pytest.raises(DataError, match="refused the query"):
        _ = TableQuery(postgres, "INSERT INTO kept VALUES (1) RETURNING k").columns
    with psycopg.connect(plain) as db:
        assert db.execute("SELECT count(*) FROM kept").fetchone() == (0,)
