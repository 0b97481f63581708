"""The notebooks run."""

from pathlib import Path

import nbclient
import nbformat
import pytest

import vitrine


@pytest.mark.parametrize("path", sorted(vitrine.notebooks.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebook(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": tmp_path}}).execute()
    assert not list(tmp_path.iterdir())
