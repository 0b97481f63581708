"""The commands of the workbench on frames of pandas and polars."""

from __future__ import annotations

import csv
import html
import importlib
import json
import os
import re
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

from vitrine.attempts import plain
from vitrine.command import CommandError, finished

Frame = TypeVar("Frame")
Source = Any  # a frame, or the path of a table
Spec = Mapping[str, Any] | str | Path  # a dictionary, the text of a TOML file, or its path


class Result(dict[str, Any]):
    """The JSON that a command answers, and its main table as a frame."""

    def __init__(self, answer: Mapping[str, Any], frame: Any, notes: str, picture: str = "") -> None:
        super().__init__(answer)
        self.frame, self.notes, self.picture = frame, notes, picture

    def __repr__(self) -> str:
        return f"{self.notes}\n\n{self.frame}"

    def _repr_html_(self) -> str:
        table = self.frame._repr_html_()
        return f"<p>{html.escape(self.notes).replace(chr(10), '<br>')}</p>{table}{self.picture}"


class Model(Result):
    """A fitted choice model: the JSON of vitrine fit, and its coefficients as a frame."""

    def save(self, path: str | Path) -> None:
        Path(path).write_text(json.dumps(self), encoding="utf-8")


def fit(data: Source, spec: Spec, **flags: Any) -> Model:
    """Fits a choice model to a table of choices. Its frame has a row for each coefficient.

    spec and the flags are those of vitrine fit, such as errors="robust" or holdout=0.2. Its notes have the answers of
    holdout, against and drop.

    >>> model = fit(vitrine.clicks, spec)
    >>> round(model["log_likelihood"], 2)
    -243.28
    """
    with _directory() as to:
        done = finished("fit", _table(data, to), _toml_file(spec, to / "spec.toml"), "--format=json", *_flags(flags))
    answer = json.loads(done.stdout)
    notes = f"{answer['choices']} choices in {answer['rows']} rows; log-likelihood {answer['log_likelihood']:.6g}, rho² {answer['rho_squared']:.4f}"
    tests = [line for line in done.stderr.splitlines() if not line.startswith("vitrine: ")]
    return Model(answer, _frame(data, answer["coefficients"]), "\n".join([notes, *tests]))


def predict(model: Model | str | Path, data: Source, **flags: Any) -> Any:
    """Predicts choices: the table of vitrine predict, such as the probabilities, or shares=True, elasticities="price".

    With score=True it is a dictionary. Labels are text; the outside option has none.

    >>> model = fit(vitrine.clicks, spec)
    >>> round(float(predict(model, vitrine.clicks)["probability"][0]), 3)
    0.305
    """
    with _directory() as to:
        text = finished("predict", _model(model, to), _table(data, to), *_flags(flags)).stdout
    return json.loads(text) if text.startswith("{") else _read(data, text)


def evaluate(log: Source, *policies: Mapping[str, Any], mapping: Spec | None = None, **flags: Any) -> Result:
    """Estimates what policies would have earned. Its frame has a row for each policy, or difference, and method.

    log is the data directory of a service or, as a frame, the log of another program, which vitrine assess and import
    read with a mapping, or one that is found. Warnings name its assumptions. policies and the flags are those of vitrine
    evaluate; the model of a policy may be a Model.

    >>> result = evaluate(pandas.read_csv(vitrine.clicks), {"show": "best"}, {"show": "revenue"}, resamples=50)
    >>> [round(x, 3) for x in result.frame["value"][:1]]
    [2.249]
    """
    with _directory() as to:
        if not isinstance(log, (str, Path)):
            table = _table(log, to)
            start = [f"--mapping={_toml_file(mapping, to / 'given.toml')}"] if mapping else []
            assessment = json.loads(finished("assess", table, f"--out={to}", "--decisions=30", "--json", *start).stdout)
            if needs := assessment.get("needs"):
                raise CommandError("\n".join([*assessment.get("problems", []), "The log cannot be imported as it is. Supply:", *needs]))
            for note in [*assessment.get("problems", []), *assessment.get("notes", [])]:
                warnings.warn(note, stacklevel=2)
            finished("import", table, "--placement=home", f"--to={to / 'data'}", f"--create={to / 'placement.json'}", f"--mapping={to / 'mapping.toml'}")
            source = str(to / "data")
        else:
            source = str(log)
        files = []
        shows = [policy.get("show", "") for policy in policies if "name" not in policy]
        for i, policy in enumerate(policies):
            show = policy.get("show", "")
            given = {"name": f"{show}-{i + 1}" if shows.count(show) > 1 else show, **policy}
            if isinstance(given.get("model"), Model):
                given["model"] = _model(given["model"], to, f"model-{i}.json")
            files.append(f"--policy={_toml_file(given, to / f'policy-{i}.toml')}")
        answer = json.loads(finished("evaluate", source, "--format=json", *files, *_flags(flags)).stdout)
    rows = []
    for estimate in answer["estimates"]:
        if estimate["value"] is not None:
            row = {"policy": estimate["policy"], "minus": None, **estimate}
            for interval in [name for name, value in row.items() if isinstance(value, list)]:
                row[f"{interval}_low"], row[f"{interval}_high"] = row.pop(interval)
            rows.append({name: value for name, value in row.items() if value is not None or name == "minus"})
    notes = "\n".join(f"{p['policy']}: {' '.join(p['support'])}" for p in answer["policies"])
    return Result(answer, _frame(log, rows), notes)


def optimize(items: Source, *, model: Model | str | Path | None = None, **rules: Any) -> Result:
    """Finds the best assortment. Its frame has a row for each item shown.

    items is a table, or a request as a dictionary. The rules are the flags of vitrine optimize.

    >>> optimize({"items": [{"id": "a", "utility": 1.2, "revenue": 3}, {"id": "b", "utility": 2}]}, max_size=1)["assortment"]
    ['a']
    """
    with _directory() as to:
        if isinstance(items, Mapping):
            source = str(to / "request.json")
            Path(source).write_text(json.dumps(items, default=plain), encoding="utf-8")
        else:
            source = _table(items, to)
        given = [f"--model={_model(model, to)}"] if model else []
        answer = json.loads(finished("optimize", source, *given, *_flags(rules)).stdout)
    rows = [{"id": item, "choice_probability": answer["choice_probability"][item]} for item in answer["assortment"]]
    return Result(answer, _frame(items, rows), f"expected revenue {answer['expected_revenue']:.6g}; {answer['outside_probability']:.4g} take nothing")


def reproduce(*names: str, out: str | Path | None = None, **flags: Any) -> Result:
    """Plays panels of the paper: the summary as a frame, and their figures. The dictionary has run.json by panel.

    out is a directory that keeps the files.

    >>> result = reproduce("main-gaussian-realizable", seeds=2, policies="uniform,oracle")
    >>> list(result.frame["policy"])
    ['uniform', 'oracle']
    """
    with _directory() as to:
        to = Path(out) if out else to
        said = finished("reproduce", *names, f"--out={to}", *_flags(flags)).stdout
        panels = [to / name for name in sorted(re.findall(r"^(\S+): regret after ", said, re.MULTILINE))]
        if not panels:
            raise ValueError(f'{", ".join(names)}: no panel of regret; vitrine.run("reproduce", …) plays other results')
        tables = [(p / "summary.csv").read_text(encoding="utf-8").splitlines(keepends=True) for p in panels]
        pictures = "".join((p / "regret.svg").read_text(encoding="utf-8") for p in panels)
        answer = {p.name: json.loads((p / "run.json").read_text(encoding="utf-8")) for p in panels}
    frame = _read(None, "".join(tables[0][:1] + [line for table in tables for line in table[1:]]))
    return Result(answer, frame, f"cumulative regret of {', '.join(answer)}", pictures)


@contextmanager
def _directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="vitrine-") as name:
        yield Path(name)


def _flags(flags: Mapping[str, Any]) -> list[str]:
    """The flags of a command, from keyword arguments.

    >>> _flags({"min_size": 2, "shares": True, "figure": None, "include": ["a", "b"], "at_most": {"shoes": 2}})
    ['--min-size=2', '--shares', '--include=a,b', '--at-most=shoes=2']
    >>> _flags({"include": pandas.Series(["boots, red", "b"])})
    ['--include=boots\\\\, red,b']
    """
    all = []
    for name, value in flags.items():
        if hasattr(value, "tolist") or hasattr(value, "to_list"):
            value = plain(value)
        if isinstance(value, Mapping):
            value = [f"{k}={v}" for k, v in value.items()]
        if isinstance(value, Iterable) and not isinstance(value, str):
            value = [str(v) for v in value]
            for v in value:
                if "\\," in v + ",":
                    raise ValueError(f"{name}: {v!r}: a backslash at the end or before a comma would hide where the next one begins")
            value = ",".join(v.replace(",", "\\,") for v in value)
        if value is not None and value is not False:
            all.append(f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}"))
    return all


def _toml(value: Any) -> str:
    """A value in TOML, without members that are None.

    >>> _toml({"a": [1, 2.5, True, "x"], "b c": {"d": 1}, "e": None})
    '{"a" = [1, 2.5, true, "x"], "b c" = {"d" = 1}}'
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml(str(k))} = {_toml(v)}" for k, v in value.items() if v is not None) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, default=plain, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML has no pairs of surrogates


def _toml_file(spec: Spec, to: Path) -> str:
    if isinstance(spec, Path) or (isinstance(spec, str) and ("=" not in spec or os.path.isfile(spec))):
        return str(spec)
    text = spec if isinstance(spec, str) else "".join(f"{_toml(str(k))} = {_toml(v)}\n" for k, v in spec.items() if v is not None)
    to.write_text(text, encoding="utf-8")
    return str(to)


def _model(model: Model | str | Path, to: Path, name: str = "model.json") -> str:
    if isinstance(model, Model):
        model.save(to / name)
        return str(to / name)
    return str(model)


def _table(data: Source, to: Path) -> str:
    """The path of a table, to which a frame is written: as Parquet, or as CSV by a pandas that cannot."""
    if isinstance(data, (str, Path)):
        return str(data)
    if not hasattr(data, "write_parquet") and not hasattr(data, "to_parquet"):
        raise TypeError(f"a {type(data).__name__}: must be a frame of pandas or polars, or the path of a table")
    path = str(to / "table.parquet")
    if hasattr(data, "write_parquet"):
        data.write_parquet(path)
        return path
    try:
        data.to_parquet(path, index=False)
    except ImportError:
        path = str(to / "table.csv")
        data.to_csv(path, index=False)
    return path


def _kind(like: Any) -> Any:
    """The library of a frame; pandas or polars, whichever is there, for another value."""
    if like is not None and not isinstance(like, (str, Path, Mapping)):
        return importlib.import_module(type(like).__module__.partition(".")[0])
    for name in ("pandas", "polars"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ImportError("the answer is a frame: install pandas or polars")


def _frame(like: Any, rows: list[dict[str, Any]]) -> Any:
    kind = _kind(like)
    return kind.DataFrame(rows) if kind.__name__ == "pandas" else kind.DataFrame(rows, infer_schema_length=None)


def _read(like: Any, text: str) -> Any:
    """A table of CSV. Labels stay text: 007 is no number, and NA is not missing."""
    kind, names = _kind(like), next(csv.reader([text.partition("\n")[0]]))
    labels = [name for name in names if name == "alternative" or name.endswith(" of")]
    if kind.__name__ == "pandas":
        missing = {name: [""] if name in labels else ["", "NaN"] for name in names}
        return kind.read_csv(StringIO(text), dtype=dict.fromkeys(labels, str), keep_default_na=False, na_values=missing)
    return kind.read_csv(StringIO(text), schema_overrides=dict.fromkeys(labels, kind.String), infer_schema_length=None)
