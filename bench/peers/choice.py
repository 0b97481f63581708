"""Simulated choices, and the time that Python estimators take for them.

    choice.py make DIR NAME ...   tables as Parquet, and specifications for vitrine
    choice.py fit NAME PEER

NAME is a table: mnl-10000, mnl-100000, mnl-1000000, nested or mixed. PEER is
numpy or xlogit. Seconds are of the processor, without reading the
table, and with standard errors.
"""
import sys
import time

import numpy as np

TABLES = {"mnl-10000": 10_000, "mnl-100000": 100_000, "mnl-1000000": 1_000_000, "nested": 20_000, "mixed": 4_000}
DRAWS = 200  # for each decision maker of mixed, who makes eight choices


def shape(name):
    """Alternatives and variables."""
    return {"nested": (8, 8), "mixed": (5, 6)}.get(name, (10, 12))


def simulate(name):
    """Variables (choices × alternatives × variables) and the chosen alternatives."""
    rng = np.random.default_rng(12)
    n, (j, k) = TABLES[name], shape(name)
    x = rng.standard_normal((n, j, k))
    beta = np.linspace(-0.6, 0.5, k)
    if name == "mixed":
        person = np.repeat(rng.standard_normal((n // 8, 2)), 8, axis=0)
        u = x @ beta + x[:, :, 0] * person[:, :1] + 0.5 * x[:, :, 1] * person[:, 1:]
    elif name == "nested":
        # By the probabilities: a nest, then an alternative in it.
        v = (x @ beta).reshape(n, 2, 4)
        lam = np.array([0.5, 0.8])
        inclusive = np.log(np.exp(v / lam[:, None]).sum(2)) * lam
        nest = np.argmax(inclusive + rng.gumbel(size=(n, 2)), axis=1)
        inside = v[np.arange(n), nest] / lam[nest][:, None] + rng.gumbel(size=(n, 4))
        return x, nest * 4 + np.argmax(inside, axis=1)
    else:
        u = x @ beta
    return x, np.argmax(u + rng.gumbel(size=u.shape), axis=1)


def make(folder, names):
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name in names:
        x, y = simulate(name)
        n, j, k = x.shape
        columns = {"id": np.repeat(np.arange(n), j).astype(np.float64), "alt": np.tile(np.arange(j), n).astype(np.float64),
                   "person": np.repeat(np.arange(n) // 8, j).astype(np.float64), "y": (np.arange(j) == y[:, None]).ravel().astype(np.float64)}
        for v in range(k):
            columns[f"x{v}"] = np.ascontiguousarray(x[:, :, v]).ravel()
        schema = pa.schema([pa.field(c, pa.float64(), nullable=False) for c in columns])
        pq.write_table(pa.table(columns, schema=schema), f"{folder}/{name}.parquet", compression="none", use_dictionary=False)
        spec = '[data]\nform = "long"\nchoice = ["id"]\nalternative = "alt"\nchosen = "y"\n'
        if name == "mixed":
            spec += 'panel = "person"\n'
        spec += f'[utility]\ngeneric = {[f"x{v}" for v in range(k)]}\n'.replace("'", '"')
        if name == "nested":
            spec += '[model]\nkind = "nested"\n'
            for nest in range(2):
                spec += f'[[model.nests]]\nname = "n{nest}"\nalternatives = {[str(4 * nest + i) for i in range(4)]}\n'.replace("'", '"')
        if name == "mixed":
            spec += f'[model]\nkind = "mixed"\ndraws = {DRAWS}\n[[model.random]]\ncoefficient = "x0"\n[[model.random]]\ncoefficient = "x1"\n'
        with open(f"{folder}/{name}.toml", "w") as f:
            f.write(spec)


def numpy_mnl(x, y):
    """Newton with the exact Hessian."""
    n, j, k = x.shape
    rows = x.reshape(-1, k)
    chosen = x[np.arange(n), y]
    beta = np.zeros(k)
    while True:
        u = (rows @ beta).reshape(n, j)
        u -= u.max(1, keepdims=True)
        p = np.exp(u)
        total = p.sum(1)
        ll = (u[np.arange(n), y] - np.log(total)).sum()
        p /= total[:, None]
        flat = p.ravel()
        mean = np.add.reduceat(rows * flat[:, None], np.arange(0, n * j, j))
        gradient = (chosen - mean).sum(0)
        hessian = (rows * flat[:, None]).T @ rows - mean.T @ mean
        step = np.linalg.solve(hessian, gradient)
        if gradient @ step < 1e-10:
            np.sqrt(np.diag(np.linalg.inv(hessian)))
            return ll
        beta += step


def numpy_nested(x, y):
    """L-BFGS with the exact gradient, and standard errors by its differences."""
    from scipy.optimize import minimize

    n, j, k = x.shape
    rows = x.reshape(-1, k)
    nest, at = y // 4, np.arange(n)

    def loss(theta):
        beta, lam = theta[:k], theta[k:]
        v = (rows @ beta).reshape(n, 2, 4)
        scaled = v / lam[:, None]
        top = scaled.max(2)
        q = np.exp(scaled - top[:, :, None])
        total = q.sum(2)
        q /= total[:, :, None]
        inclusive = top + np.log(total)
        a = lam * inclusive
        high = a.max(1)
        p = np.exp(a - high[:, None])
        denominator = p.sum(1)
        p /= denominator[:, None]
        ll = scaled[at, nest, y % 4] - inclusive[at, nest] + a[at, nest] - high - np.log(denominator)
        c = p * lam
        c[at, nest] += 1 - lam[nest]
        s = p.copy()
        s[at, nest] -= 1
        r = c[:, :, None] * q
        r[at, nest, y % 4] -= 1
        gradient = np.empty_like(theta)
        gradient[:k] = (r / lam[:, None]).reshape(-1) @ rows
        gradient[k:] = (-(r * v).sum(2) / lam**2 + s * inclusive).sum(0)
        return -ll.sum(), gradient

    start = np.r_[np.zeros(k), np.ones(2)]
    best = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(None, None)] * k + [(0.02, 50)] * 2, options={"gtol": 1e-4, "ftol": 1e-14, "maxiter": 1000})
    theta = best.x
    hessian = np.array([(loss(theta + h)[1] - loss(theta - h)[1]) / 2e-5 for h in 1e-5 * np.eye(k + 2)])
    np.sqrt(np.diag(np.linalg.inv(hessian)))
    return -best.fun


def xlogit_fit(name, x, y):
    from xlogit import MixedLogit, MultinomialLogit

    n, j, k = x.shape
    names = [f"x{v}" for v in range(k)]
    frame = dict(X=x.reshape(-1, k), y=(np.arange(j) == y[:, None]).ravel().astype(int), varnames=names,
                 alts=np.tile(np.arange(j), n), ids=np.repeat(np.arange(n), j), verbose=0)
    if name == "mixed":
        model = MixedLogit()
        model.fit(**frame, panels=np.repeat(np.arange(n) // 8, j), randvars={"x0": "n", "x1": "n"}, n_draws=DRAWS)
    else:
        model = MultinomialLogit()
        model.fit(**frame)
    return model.loglikelihood


def fit(name, peer):
    import resource

    x, y = simulate(name)
    start = time.process_time()
    if peer == "xlogit":
        ll = xlogit_fit(name, x, y)
    else:
        ll = numpy_nested(x, y) if name == "nested" else numpy_mnl(x, y)
    seconds = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{peer}: log-likelihood {ll:.4f}, fit {seconds:.3f} s, at most {memory} MB")


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], sys.argv[3:])
    else:
        fit(*sys.argv[2:])
