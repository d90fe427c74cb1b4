"""The tools of the programs: plain functions, which both sides call.

Plain Python has them as async functions (sitecustomize.py). For the server, the test starts this file as
a process that answers one line of JSON for each call.
"""

from __future__ import annotations

import inspect
import json
import sqlite3
import sys
import time
from typing import Any, TextIO

# What a program has stored, by its name. Plain Python has one program in a process.
_stored: dict[str, dict[str, Any]] = {}


class Failure(Exception):
    """The tool has failed. The text is the message for the program."""


def get_weather(city: str, days: int = 1) -> Any:
    """The weather of a city."""
    known = {"Paris": 18, "Rome": 25, "Oslo": 7, "Cairo": 34, "Lima": 21, "Zürich": 15, "東京": 22}
    if city not in known:
        raise Failure(f"no weather for {city}")
    forecast = [{"day": day, "celsius": known[city] + (day * 7) % 5 - 2} for day in range(1, days + 1)]
    return {"city": city, "celsius": known[city], "sky": "clear" if known[city] > 20 else "clouds", "forecast": forecast}


def query(sql: str) -> Any:
    """Rows of a small database with the tables customers and orders."""
    database = sqlite3.connect(":memory:")
    database.row_factory = sqlite3.Row
    database.executescript(
        """
        create table customers (id integer, name text, country text, since text);
        insert into customers values (1, 'Ada', 'UK', '2019-05-01'), (2, 'Björn', 'SE', '2020-11-15'),
            (3, 'Chen', 'CN', '2021-01-31'), (4, 'Dora', 'DE', '2021-02-28'), (5, 'Eve', 'UK', '2024-02-29');
        create table orders (id integer, customer integer, day text, amount real, status text);
        insert into orders values (10, 1, '2025-01-03', 120.5, 'paid'), (11, 1, '2025-01-20', 80, 'open'),
            (12, 2, '2025-02-02', 42.25, 'paid'), (13, 3, '2025-02-14', 310, 'paid'), (14, 3, '2025-03-01', 15.75, 'void'),
            (15, 4, '2025-03-09', 99.99, 'paid'), (16, 2, '2025-03-30', 60, null), (17, 9, '2025-04-01', 5, 'open');
        """
    )
    try:
        return [dict(row) for row in database.execute(sql)]
    except sqlite3.Error as error:
        raise Failure(f"SQL: {error}") from None
    finally:
        database.close()


def search(text: str, limit: int = 3) -> Any:
    """Documents that contain a text."""
    documents = [
        "Reset a password in the settings", "Export a report as CSV", "Invoices are sent on the first of a month",
        "Password rules: at least 12 characters", "A report can be scheduled", "Delete an account", "Größe der Dateien",
    ]  # fmt: skip
    found = [{"id": n, "title": title} for n, title in enumerate(documents) if text.lower() in title.lower()]
    return {"total": len(found), "hits": found[:limit]}


def send_mail(to: str, subject: str = "", body: str = "") -> Any:
    """Sends a mail."""
    if "@" not in to:
        raise Failure(f"{to} is no address")
    return {"id": f"mail-{len(to) + len(subject) + len(body)}", "to": to, "sent": True}


def convert(amount: float, source: str, target: str) -> Any:
    """An amount in another currency."""
    rates = {"EUR": 1.0, "USD": 1.25, "JPY": 160.0, "GBP": 0.8}
    for currency in (source, target):
        if currency not in rates:
            raise Failure(f"unknown currency {currency}")
    return round(amount / rates[source] * rates[target], 4)


def list_orders(page: int = 1, size: int = 3) -> Any:
    """One page of ten orders."""
    orders = [{"id": n, "sku": f"S{n % 4}", "quantity": n * 3 % 7 + 1, "price": 2.5 * n} for n in range(1, 11)]
    items = orders[(page - 1) * size : page * size]
    return {"items": items, "next": page + 1 if page * size < len(orders) else None}


def get_user(id: int) -> Any:
    """A user by number."""
    users = {1: ("Ada", ["admin", "dev"]), 2: ("Björn", ["dev"]), 3: ("Chen", [])}
    if id not in users:
        raise Failure(f"no user {id}")
    name, roles = users[id]
    return {"id": id, "name": name, "roles": roles, "manager": id - 1 if id > 1 else None}


def stock_prices(symbol: str, days: int = 5) -> Any:
    """The last prices of a share."""
    seed = sum(map(ord, symbol))
    return [{"date": f"2025-03-{day + 3:02}", "close": round(100 + seed % 17 + (day * seed % 11) / 4, 2)} for day in range(days)]


def now() -> Any:
    """The time of the business system."""
    return "2025-03-30T01:30:00+01:00"


def echo(value: Any) -> Any:
    """Returns what it gets."""
    return value


def fail(message: str = "it broke") -> Any:
    """Always fails."""
    raise Failure(message)


def slow(value: Any, seconds: float = 0.05) -> Any:
    """Returns what it gets after a while."""
    time.sleep(seconds)
    return value


def flaky(key: str, failures: int = 2) -> Any:
    """Fails for the first times with this key."""
    counts = _state.setdefault("counts", {})
    counts[key] = counts.get(key, 0) + 1
    if counts[key] <= failures:
        raise Failure(f"{key}: try again ({counts[key]})")
    return {"key": key, "tries": counts[key]}


def store_value(key: str, value: Any) -> Any:
    """Keeps a value for load_value."""
    _state[f"value {key}"] = value
    return None


def load_value(key: str) -> Any:
    """A value that was stored."""
    if f"value {key}" not in _state:
        raise Failure(f"nothing is stored as {key}")
    return _state[f"value {key}"]


_state: dict[str, Any] = {}

ALL = [
    get_weather, query, search, send_mail, convert, list_orders, get_user, stock_prices, now, echo, fail, slow,
    flaky, store_value, load_value,
]  # fmt: skip


def use_state_of(program: str) -> None:
    """From here on, tools that remember something work for this program."""
    global _state
    _state = _stored.setdefault(program, {})


def _definition(tool: Any) -> dict[str, Any]:
    types = {"str": "string", "int": "integer", "float": "number"}
    properties, required = {}, []
    for name, parameter in inspect.signature(tool).parameters.items():
        properties[name] = {"type": types[parameter.annotation]} if parameter.annotation in types else {}
        if parameter.default is parameter.empty:
            required.append(name)
        else:
            properties[name]["default"] = parameter.default
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"name": tool.__name__, "description": tool.__doc__, "parameters": schema}


def serve(lines: TextIO) -> None:
    """First print the definitions of the tools, then answer calls."""
    print(json.dumps([_definition(tool) for tool in ALL]), flush=True)
    known = {tool.__name__: tool for tool in ALL}
    for line in lines:
        call = json.loads(line)
        use_state_of(call["program"])
        answer: dict[str, Any] = {}
        try:
            answer["result"] = known[call["name"]](**call["input"])
        except Failure as failure:
            answer = {"is_error": True, "error_message": str(failure)}
        except Exception as error:  # wrong types of arguments
            answer = {"is_error": True, "error_message": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve(sys.stdin)
