import sqlite3
db = sqlite3.connect(":memory:")
db.execute("create table t (id integer primary key, v real, note text)")
with db:
    db.executemany("insert into t (v, note) values (?, ?)", [(1.5, "a"), (2.5, None), (4, "ü")])
print(db.execute("select count(*), sum(v), group_concat(note) from t").fetchone())
try:
    with db:
        db.execute("insert into t values (1, 0, 'dup')")
except sqlite3.IntegrityError as e:
    print(type(e).__name__, e, db.total_changes)
