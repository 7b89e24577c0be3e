"""One-dimensional digits: the rows of the package that invented them."""

from __future__ import annotations

import numpy as np
import pytest

from groundstate.data import mnist1d


def test_rows_are_those_of_the_package() -> None:
    # python -c "from mnist1d.data import make_dataset as m; d = m(); print(d['x'][0, :4], d['y'][:10])"
    data = mnist1d()
    first = [-0.33200566736939013, -0.4719103656557236, -0.778697076293495, -1.0097408265367045]
    np.testing.assert_allclose(data.X_train[0, :4], first, rtol=1e-12)
    assert data.y_train[:10].tolist() == [2, 6, 4, 5, 6, 6, 6, 0, 3, 1]
    last = [0.6598756470890784, 0.8777343497528006, 1.1931518368352758]
    np.testing.assert_allclose(data.X_test[-1, -3:], last, rtol=1e-12)
    assert data.X_train.shape == (4000, 40) and data.X_test.shape == (1000, 40)
    both = np.vstack([data.X_train, data.X_test])
    assert abs(both.mean()) < 1e-12 and both.std() == pytest.approx(1.0)


def test_columns_can_lose_their_order() -> None:
    plain, mixed = mnist1d(100), mnist1d(100, shuffle=True)
    assert not np.array_equal(plain.X_train, mixed.X_train)
    np.testing.assert_allclose(np.sort(plain.X_train, 1), np.sort(mixed.X_train, 1))
    with pytest.raises(ValueError, match="n_samples >= 20"):
        mnist1d(5)
