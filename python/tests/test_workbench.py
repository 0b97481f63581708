"""The workbench on frames. pandas and polars get the same numbers."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import numpy
import pandas
import polars
import pytest

import vitrine
from vitrine.workbench import _frame, _read, _toml

from .conftest import SPEC

FRAMES: list[Any] = [pandas.read_csv(vitrine.clicks), polars.read_csv(vitrine.clicks)]


@pytest.mark.parametrize("data", FRAMES, ids=["pandas", "polars"])
def test_fit_and_predict(data: Any, tmp_path: Path) -> None:
    model = vitrine.fit(data, SPEC, errors="robust")
    assert type(model.frame) is type(data)
    assert list(model.frame["name"]) == ["price", "rating"]
    assert model["log_likelihood"] == pytest.approx(vitrine.fit(vitrine.clicks, SPEC)["log_likelihood"], abs=1e-9)
    assert "rho²" in repr(model)
    assert "<table" in model._repr_html_()
    model.save(tmp_path / "model.json")
    of_model, of_file = vitrine.predict(model, data), vitrine.predict(tmp_path / "model.json", data)
    assert type(of_model) is type(data)
    assert of_model.equals(of_file)
    assert vitrine.predict(model, data, shares=True)["share"].sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("data", FRAMES, ids=["pandas", "polars"])
def test_answers_beside_the_model(data: Any) -> None:
    model = vitrine.fit(data, {**SPEC, "model": None}, holdout=0.2)
    assert "Held out with seed 1: " in model.notes
    assert vitrine.predict(model, data, score=True)["choices"] == 300


@pytest.mark.parametrize("library", [pandas, polars])
def test_labels_are_text(library: Any) -> None:
    text = vitrine.clicks.read_text(encoding="utf-8").replace("sku02", "007").replace("sku05", "NA")
    data = library.read_csv(StringIO(text), **({"keep_default_na": False} if library is pandas else {}))
    labels = list(vitrine.predict(vitrine.fit(data, SPEC), data)["alternative"])
    assert labels[:2] == ["007", "NA"]
    assert labels[2] != labels[2] or labels[2] is None  # the outside option


def test_warnings() -> None:
    """Labels of another type than the model's would lose their constants in silence."""
    model = vitrine.fit(FRAMES[0], {**SPEC, "utility": {"constants": True}})
    with pytest.warns(UserWarning, match="the model was fitted without alternative") as warned:
        vitrine.predict(model, FRAMES[0].assign(item=FRAMES[0]["item"] + ","))
    assert {warning.filename for warning in warned} == {__file__}


def test_late_types() -> None:
    """A column's type is that of all its rows: polars looks at the first 100 by default."""
    frame = _read(FRAMES[1], "choice,probability\n" + "1,1\n" * 101 + "x,0.5\n")
    assert frame.row(-1) == ("x", 0.5)
    assert _frame(FRAMES[1], [{"value": 1}] * 101 + [{"value": 0.5}])["value"][-1] == 0.5


@pytest.mark.parametrize("data", FRAMES, ids=["pandas", "polars"])
def test_evaluate(data: Any) -> None:
    model = vitrine.fit(data, {**SPEC, "utility": {"generic": ["price", "rating"], "terms": [{"name": "constant", "variable": "1"}]}})
    result = vitrine.evaluate(data, {"show": "best"}, {"name": "fitted", "show": "model", "model": model}, resamples=20)
    assert type(result.frame) is type(data)
    assert list(result.frame["policy"]) == ["best", "fitted", "fitted"]
    assert "nothing checks its model" in repr(result)
    with pytest.raises(vitrine.CommandError, match="cannot be imported as it is"):
        vitrine.evaluate(data.head(0), {"show": "best"})
    with pytest.raises(vitrine.CommandError, match=r'row 1: column revenue: "€2.7" is not a finite number'):
        vitrine.evaluate(of_dicts(data, lambda row: {**row, "revenue": f"€{row['revenue']}" if row["decision_id"] == "d000" else str(row["revenue"])}), {"show": "best"})
    with pytest.warns(UserWarning, match=r'revenue is not taken for the revenue \(row 1: "-2.3"\)'):
        vitrine.evaluate(of_dicts(data, lambda row: {**row, "revenue": row["revenue"] - 5}), {"show": "best"}, resamples=20)
    with pytest.warns(UserWarning, match="An item was taken on every page"):
        vitrine.evaluate(of_dicts(data, lambda row: {**row, "chosen": int(row["shown"] == 1)}), {"show": "best"}, resamples=20)
    with pytest.warns(UserWarning, match="revenue is not used: it is missing or 0 for every item that was not taken") as warned:
        vitrine.evaluate(of_dicts(data, lambda row: {**row, "revenue": row["revenue"] * row["chosen"]}), {"show": "best"}, resamples=20)
    assert {warning.filename for warning in warned} == {__file__}
    sizes = vitrine.evaluate(data, {"show": "revenue", "size": 1}, {"show": "revenue"}, resamples=20)
    assert set(sizes.frame["policy"]) == {"revenue-1", "revenue-2"}


def of_dicts(data: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """A frame of the same kind with changed rows."""
    return type(data)([change(row) for row in pandas.read_csv(vitrine.clicks).to_dict("records")])


def test_evaluate_a_service(client: vitrine.Client, service: vitrine.Service) -> None:
    client.put_placement("evaluated", max_size=1, features=[{"name": "price", "kind": "number"}], log_items="all", mode="explore", explore_share=1)
    for choice in ["a", "b", None] * 10:
        page = client.decide("evaluated", items=[{"id": "a", "features": {"price": 1}}, {"id": "b", "features": {"price": 2}}])
        shown = [item["id"] for item in page["assortment"]]
        client.outcome("evaluated", page["decision_id"], choice=choice if choice in shown else None)
    result = vitrine.evaluate(service.data, {"show": "items", "items": ["a"]}, placement="evaluated", resamples=20)
    assert set(result.frame["policy"]) == {"items"}


def test_numbers_of_numpy() -> None:
    of_numpy = pandas.Series([1.5, 0.5], dtype="float32").to_numpy()
    request = {"items": [{"id": i, "utility": u} for i, u in zip("ab", of_numpy, strict=True)]}
    assert vitrine.optimize(request, max_size=1)["assortment"] == ["a"]
    latent = SPEC | {"model": {"kind": "latent", "classes": pandas.Series([1]).to_numpy()[0]}}
    with pytest.raises(vitrine.CommandError, match="classes"):
        vitrine.fit(vitrine.clicks, latent)
    request["items"][0]["utility"] = numpy.longdouble(1.5)
    with pytest.raises(TypeError, match="not a longdouble"):
        vitrine.optimize(request)


@pytest.mark.parametrize("library", [pandas, polars])
def test_optimize(library: Any) -> None:
    items = library.DataFrame({"id": ["a", "b", "c"], "utility": [1.2, 2.0, 0.3], "revenue": [3.0, 1.0, 2.9], "groups": ["x", "x", "y"]})
    result = vitrine.optimize(items, max_size=2, at_most={"x": 1})
    assert list(result.frame["id"]) == result["assortment"] == ["a", "c"]


def test_pandas_without_parquet(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(*_: Any, **__: Any) -> None:
        raise ImportError

    monkeypatch.setattr(pandas.DataFrame, "to_parquet", without)
    assert vitrine.fit(FRAMES[0], SPEC)["choices"] == 300


def test_reproduce(tmp_path: Path) -> None:
    result = vitrine.reproduce("main-gaussian-realizable", "main-uniform-realizable", seeds=1, policies=["uniform", "oracle"], out=tmp_path)
    assert list(result.frame["experiment"]) == ["main-gaussian-realizable"] * 2 + ["main-uniform-realizable"] * 2
    assert result._repr_html_().count("<svg") == 2
    assert (tmp_path / "main-gaussian-realizable" / "regret.csv").exists()
    again = vitrine.reproduce("main-uniform-realizable", seeds=1, policies=["uniform", "oracle"], out=tmp_path)
    assert list(again) == ["main-uniform-realizable"]
    with pytest.raises(ValueError, match="geometric-condition: no panel of regret"):
        vitrine.reproduce("geometric-condition")


def test_names_of_any_text() -> None:
    """Names reach the program through TOML, which has no pairs of surrogates and no raw DEL."""
    name = "price 😀\x7f\t"
    renamed = {**SPEC, "utility": {"generic": [name, "rating"]}}
    assert list(vitrine.fit(FRAMES[0].rename(columns={"price": name}), renamed).frame["name"]) == [name, "rating"]


def test_path_with_an_equals_sign(tmp_path: Path) -> None:
    """As data lakes name their directories. Any other text with one is TOML."""
    text = "".join(f"{k} = {_toml(v)}\n" for k, v in SPEC.items())
    spec = tmp_path / "year=2026.toml"
    spec.write_text(text, encoding="utf-8")
    assert vitrine.fit(vitrine.clicks, str(spec)) == vitrine.fit(vitrine.clicks, text)


def test_errors() -> None:
    with pytest.raises(vitrine.CommandError, match=r"vitrine fit .*prize"):
        vitrine.fit(vitrine.clicks, {**SPEC, "utility": {"generic": ["prize"]}})


def test_mistakes() -> None:
    request = {"items": [{"id": "a", "utility": 1}, {"id": "b\\", "utility": 1}]}
    assert vitrine.optimize(request, max_size=1, include={"a"})["assortment"] == ["a"]
    assert vitrine.optimize(request, max_size=1, include=(id for id in "a"))["assortment"] == ["a"]
    for id in ("b\\", "b\\,c"):
        with pytest.raises(ValueError, match=r"include: 'b.*': a backslash"):
            vitrine.optimize(request, include=[id, "a"])
    for data, kind in ((None, "NoneType"), ([{"price": 1}], "list"), (pandas.Series([1]), "Series")):
        with pytest.raises(TypeError, match=f"^a {kind}: must be a frame of pandas or polars, or the path of a table"):
            vitrine.fit(data, SPEC)


def test_missing_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITRINE_BINARY", "/nowhere/vitrine")
    with pytest.raises(vitrine.CommandError, match="/nowhere/vitrine: there is no such program: see VITRINE_BINARY"):
        vitrine.run("version")
