"""The quickstarts: schemas under the names, with the fields, that Confluent's connector has.

Each line is a field: its name, its Avro type and what its values are like.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.schemas.data.errors import ConfigError


def _any(*options: Any) -> dict[str, Any]:
    return {"options": list(options)}


def _like(pattern: str) -> dict[str, Any]:
    return {"regex": pattern}


def _between(low: float, high: float) -> dict[str, Any]:
    return {"range": {"min": low, "max": high}}


def _count(start: int = 1, step: int = 1, restart: int | None = None) -> dict[str, Any]:
    more = {} if restart is None else {"restart": restart}
    return {"iteration": {"start": start, "step": step, **more}}


_USER: Final = [
    ("registertime", "long", _between(1_487_715_775_521, 1_519_273_364_600)),
    ("userid", "string", _like("User_[1-9]")),
    ("regionid", "string", _like("Region_[1-9]")),
    ("gender", "string", _any("MALE", "FEMALE", "OTHER")),
]
_CITIES: Final = _any("Palo Alto", "San Francisco", "London", "Frankfurt", "New York", "Raleigh")
_FIELDS: Final[dict[str, list[tuple[str, Any, dict[str, Any]]]]] = {
    "pageviews": [
        ("viewtime", "long", _count(step=10)),
        ("userid", "string", _like("User_[1-9]")),
        ("pageid", "string", _like("Page_[1-9][0-9]?")),
    ],
    "users": _USER,
    "users_array_map": [
        *_USER,
        ("interests", {"type": "array", "items": "string"}, {
            "options": [["Game", "News"], ["Sport", "Movies"], ["Travel"], ["News", "Travel"]]
        }),
        ("contactinfo", {"type": "map", "values": "string"}, {
            "options": [
                {"phone": "6502215368", "city": "San Carlos", "state": "CA", "zipcode": "94070"},
                {"phone": "9192394422", "city": "Raleigh", "state": "NC", "zipcode": "27601"},
            ]
        }),
    ],
    "orders": [
        ("ordertime", "long", _between(1_487_715_775_521, 1_519_273_364_600)),
        ("orderid", "int", _count(start=0)),
        ("itemid", "string", _like("Item_[1-9][0-9]{0,2}")),
        ("orderunits", "double", _between(0.1, 10.0)),
        ("address", {"type": "record", "name": "address", "fields": [
            {"name": "city", "type": {
                "type": "string", "arg.properties": _like("City_[1-9][0-9]?")}},
            {"name": "state", "type": {
                "type": "string", "arg.properties": _like("State_[1-9][0-9]?")}},
            {"name": "zipcode", "type": {
                "type": "long", "arg.properties": _between(10_000, 99_999)}},
        ]}, {}),
    ],
    "ratings": [
        ("rating_id", "long", _count()),
        ("user_id", "int", _between(-1, 20)),
        ("stars", "int", _between(1, 6)),
        ("route_id", "int", _between(1, 10_000)),
        ("rating_time", "long", _count(start=1, step=12)),
        ("channel", "string", _any("web", "ios", "android", "iOS-test")),
        ("message", "string", _any("worst. flight. ever.", "thank you for the most friendly crew",
                                   "why is it so difficult to keep the bathrooms clean ?")),
    ],
    "stock_trades": [
        ("side", "string", _any("BUY", "SELL")),
        ("quantity", "int", _between(1, 5001)),
        ("symbol", "string", _any("ZBZX", "ZJZZT", "ZTEST", "ZVV", "ZVZZT", "ZWZZT", "ZXZZT")),
        ("price", "int", _between(5, 1001)),
        ("account", "string", _any("ABC123", "LMN456", "XYZ789")),
        ("userid", "string", _like("User_[1-9]")),
    ],
    "clickstream_codes": [
        ("code", "int", _any(200, 302, 404, 405, 406, 407)),
        ("definition", "string", _any("Successful", "Redirect", "Page not found",
                                      "Method not allowed", "Not acceptable")),
    ],
    "clickstream": [
        ("ip", "string", _like("(111|122|222)\\.(90|145|173)\\.[1-9][0-9]?\\.[1-9][0-9]?")),
        ("userid", "int", _between(0, 40)),
        ("remote_user", "string", _any("-")),
        ("time", "string", _count(step=10)),
        ("_time", "long", _count(step=10)),
        ("request", "string", _any("GET /index.html HTTP/1.1", "GET /images/logo.png HTTP/1.1",
                                   "GET /site/login.html HTTP/1.1")),
        ("status", "string", _any("200", "302", "404", "405", "406", "407")),
        ("bytes", "string", _any("278", "1289", "2048", "4096", "4006", "4196", "14096")),
        ("referrer", "string", _any("-")),
        ("agent", "string", _any("Mozilla/5.0 (compatible; Googlebot/2.1)", "Mozilla/5.0")),
    ],
    "clickstream_users": [
        ("user_id", "int", _count()),
        ("username", "string", _any("AbdelKable_86", "BenSteins_235", "Oriana_1987")),
        ("registered_at", "long", _between(1_407_645_330_000, 1_502_339_792_000)),
        ("first_name", "string", _any("Elwyn", "Curran", "Hanson", "Arlyne", "Reeva", "Dimitri")),
        ("last_name", "string", _any("Vanyard", "Garrity", "Loxston", "Tomini", "Pask", "Kitt")),
        ("city", "string", _CITIES),
        ("level", "string", _any("Gold", "Silver", "Platinum")),
    ],
    "inventory": [
        ("id", "long", _count(start=0)),
        ("quantity", "int", _between(1, 20)),
        ("productid", "long", _between(1, 20)),
    ],
    "product": [
        ("id", "long", _count(start=0)),
        ("name", "string", _like("Product_[1-9][0-9]?")),
        ("description", "string", {"length": 20}),
        ("price", "float", _between(1, 100)),
    ],
    "purchases": [
        ("id", "long", _count(start=0)),
        ("item_type", "string", _any("yellow pencil", "black pen", "eraser", "ruler", "stapler")),
        ("quantity", "long", _between(1, 10)),
        ("price_per_unit", "float", _between(0.5, 20)),
    ],
    "transactions": [
        ("transaction_id", "long", _count()),
        ("card_id", "long", _count(restart=20)),
        ("user_id", "string", _like("User_[1-9]?")),
        ("purchase_id", "long", _count(start=0)),
        ("store_id", "int", _between(1, 8)),
    ],
    "stores": [
        ("store_id", "int", _count(restart=8)),
        ("city", "string", _CITIES),
        ("state", "string", _any("CA", "NC", "NY", "UK", "DE")),
    ],
    "credit_cards": [
        ("card_id", "long", _count(restart=21)),
        ("card_number", "string", _like("[0-9]{4}-[0-9]{4}-[0-9]{4}-[0-9]{4}")),
        ("cvv", "string", _like("[0-9]{3}")),
        ("expiration_date", "string", _like("(0[1-9]|1[0-2])/2[0-9]")),
    ],
}  # fmt: skip
KEYS: Final = {
    "pageviews": "viewtime",
    "users": "userid",
    "users_array_map": "userid",
    "users_": "userid",
    "orders": "orderid",
    "ratings": "rating_id",
    "stock_trades": "symbol",
    "clickstream_codes": "code",
    "clickstream": "ip",
    "clickstream_users": "user_id",
    "inventory": "id",
    "product": "id",
    "purchases": "id",
    "transactions": "transaction_id",
    "stores": "store_id",
    "credit_cards": "card_id",
}


def quickstart(name: str) -> dict[str, Any]:
    """Return the Avro schema of a quickstart. Raises ConfigError."""
    fields = _FIELDS.get("users_array_map" if name == "users_" else name)
    if fields is None:
        raise ConfigError(
            f"there is no quickstart {name}; choose from {', '.join(sorted(_FIELDS))}"
        )
    return {
        "type": "record",
        "namespace": "ksql",
        "name": name,
        "fields": [{"name": one, "type": _typed(kind, hints)} for one, kind, hints in fields],
    }


def _typed(kind: Any, hints: dict[str, Any]) -> dict[str, Any]:
    node = dict(kind) if isinstance(kind, dict) else {"type": kind}
    if hints:
        node["arg.properties"] = hints
    return node
