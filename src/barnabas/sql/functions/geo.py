"""GEO_DISTANCE: between two points on the earth, along a great circle."""

from __future__ import annotations

from math import asin, cos, radians, sin, sqrt

from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.catalog import scalar

_EARTH_RADIUS_KM = 6371.0
_EARTH_RADIUS_MILES = 3959.0
_RADII = {
    **dict.fromkeys(("mi", "mile", "miles"), _EARTH_RADIUS_MILES),
    **dict.fromkeys(("km", "kilometer", "kilometers", "kilometre", "kilometres"), _EARTH_RADIUS_KM),
}


@scalar(
    "geo_distance",
    "(lat1 DOUBLE, lon1 DOUBLE, lat2 DOUBLE, lon2 DOUBLE) -> DOUBLE",
    "(lat1 DOUBLE, lon1 DOUBLE, lat2 DOUBLE, lon2 DOUBLE, units STRING) -> DOUBLE",
    description="The distance between two points on the earth along a great circle (haversine "
    "formula). Points are latitude and longitude in decimal degrees.",
    parameters={
        "lat1": "the latitude of the first point",
        "lon1": "the longitude of the first point",
        "lat2": "the latitude of the second point",
        "lon2": "the longitude of the second point",
        "units": "of the result: MILES or KM; KM if it is left out",
    },
)
def geo_distance(
    lat1: float | None,
    lon1: float | None,
    lat2: float | None,
    lon2: float | None,
    units: str | None = "KM",
) -> float:
    if lat1 is None or lon1 is None or lat2 is None or lon2 is None:
        raise EvaluationError("GEO_DISTANCE needs coordinates that are not NULL.")
    _check(lat1, lon1, lat2, lon2)
    a = _haversine(radians(lat2 - lat1)) + _haversine(radians(lon2 - lon1)) * cos(
        radians(lat1)
    ) * cos(radians(lat2))
    return 2 * asin(sqrt(a)) * _radius(units)


def _haversine(angle: float) -> float:
    return sin(angle / 2) ** 2


def _check(lat1: float, lon1: float, lat2: float, lon2: float) -> None:
    if max(abs(lat1), abs(lat2)) > 90:
        raise EvaluationError(
            "valid latitude values for GeoDistance function are in the range of -90 to 90 "
            "decimal degrees"
        )
    if max(abs(lon1), abs(lon2)) > 180:
        raise EvaluationError(
            "valid longitude values for GeoDistance function are in the range of -180 to +180 "
            "decimal degrees"
        )


def _radius(units: str | None) -> float:
    name = (units or "").strip().lower()
    if not name:
        return _EARTH_RADIUS_KM
    if name not in _RADII:
        raise EvaluationError(
            "GeoDistance function units parameter must be one of mi, mile, miles, km, kilometer, "
            "kilometers, kilometre or kilometres. Values are case-insensitive."
        )
    return _RADII[name]
