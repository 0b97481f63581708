from collections.abc import Iterator

import pytest

import vitrine

SPEC = {
    "data": {"form": "long", "choice": ["decision_id"], "alternative": "item", "chosen": "chosen", "available": "shown > 0", "outside": "implicit"},
    "utility": {"generic": ["price", "rating"]},
}


@pytest.fixture(scope="session")
def service() -> Iterator[vitrine.Service]:
    with vitrine.serve() as service:
        yield service


@pytest.fixture
def client(service: vitrine.Service) -> Iterator[vitrine.Client]:
    with service.client() as client:
        yield client
