#!/usr/bin/env python3
"""Makes statistics.json: the expected results of scruple-stats, by NumPy and SciPy or by plain enumeration.

Intervals are found here by applying a test to every candidate. The code that is checked uses other methods.
Run with Python 3 and SciPy 1.11 or later:  python make.py > statistics.json
"""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
from scipy import optimize, stats

rng = np.random.default_rng(20240229)


def plain(x):
    """Rounds readings to 15 digits, so that JSON holds exactly the numbers that are used."""
    return [float(f"{v:.15g}") for v in np.asarray(x, dtype=float)]


def busy(n, base=100.0):
    """Readings of a busy machine: a little noise, and a few inflated a lot."""
    noise = np.exp(rng.normal(0, 0.02, n))
    hit = rng.random(n) < 0.2
    return plain(base * noise * np.where(hit, rng.uniform(1, 10, n), 1))


def quantiles():
    cases = []
    for n in [1, 2, 3, 7, 10, 41]:
        data = busy(n)
        p = [0, 0.01, 0.1, 0.25, 0.5, 0.731, 0.9, 0.99, 1]
        cases.append({"data": data, "p": p, "q": [float(v) for v in np.quantile(data, p, method="linear")]})
    return cases


def summaries():
    cases = []
    for n in [2, 9, 60]:
        d = np.array(busy(n))
        cases.append({"data": plain(d), "mean": d.mean(), "sd": d.std(ddof=1), "min": d.min(), "max": d.max(),
                      "p10": np.quantile(d, 0.1), "median": np.median(d), "p90": np.quantile(d, 0.9),
                      "mad": float(stats.median_abs_deviation(d))})
    return cases


def binomial_tail(n, p, k):
    """P(at most k of n), exactly."""
    return sum(Fraction(math.comb(n, i)) * p**i * (1 - p) ** (n - i) for i in range(k + 1))


def quantile_intervals():
    """Ranks (from 1) of the order statistics, found by trying every rank with exact fractions."""
    cases = []
    for p in [Fraction(1, 2), Fraction(1, 10), Fraction(9, 10)]:
        for n in [4, 5, 6, 7, 8, 9, 10, 15, 20, 29, 36, 40, 100, 333]:
            for level in [Fraction(95, 100), Fraction(99, 100), Fraction(9, 10)]:
                tail = (1 - level) / 2
                low = [k for k in range(1, n + 1) if binomial_tail(n, p, k - 1) <= tail]
                high = [k for k in range(1, n + 1) if 1 - binomial_tail(n, p, k - 1) <= tail]
                case = {"n": n, "p": float(p), "level": float(level), "low": None}
                if low and high:
                    left, right = max(low), min(high)
                    achieved = binomial_tail(n, p, right - 1) - binomial_tail(n, p, left - 1)
                    case |= {"low": left, "high": right, "achieved": float(achieved)}
                cases.append(case)
    return cases


def signed_rank_distributions():
    """Small distributions by enumerating all signs, larger ones by SciPy's p-values."""
    cases = []
    for n in [1, 2, 3, 6, 10, 14]:
        counts = [0] * (n * (n + 1) // 2 + 1)
        for signs in itertools.product([0, 1], repeat=n):
            counts[sum(r for r, s in zip(range(1, n + 1), signs) if s)] += 1
        cases.append({"n": n, "chances": [c / 2**n for c in counts]})
    return cases


def walsh(d):
    return np.sort([(d[i] + d[j]) / 2 for i in range(len(d)) for j in range(i, len(d))])


def invert(candidates, p_value, alpha):
    """The closed interval of shifts that the test does not reject, asked between all neighbouring candidates."""
    between = (candidates[:-1] + candidates[1:]) / 2
    lo, hi = 0, len(between) - 1
    if p_value(candidates[0] - 1) > alpha:
        return None
    while p_value(between[lo]) <= alpha:
        lo += 1
    while p_value(between[hi]) <= alpha:
        hi -= 1
    return float(candidates[lo]), float(candidates[hi + 1])


def signed_rank_intervals():
    cases = []
    for n in [5, 6, 8, 10, 13, 20, 35, 50, 60, 90]:
        d = np.array(plain(rng.normal(0.3, 1, n) + rng.standard_t(2, n)))
        method = "exact" if n <= 50 else "approx"
        for level in [0.9, 0.95, 0.99]:
            kw = {"method": method} | ({"correction": True} if method == "approx" else {})
            found = invert(walsh(d), lambda t: stats.wilcoxon(d - t, **kw).pvalue, 1 - level + 1e-12)
            cases.append({"data": plain(d), "level": level, "estimate": float(np.median(walsh(d))),
                          "low": found and found[0], "high": found and found[1]})
    return cases


def signed_rank_ties():
    """With ties the ranks of the interval stay those of the untied distribution."""
    cases = []
    for n in [10, 20, 40]:
        d = np.round(rng.normal(0.3, 1, n), 1)
        w = walsh(d)
        counts = np.array([1], dtype=object)
        for r in range(1, n + 1):
            wider = np.zeros(len(counts) + r, dtype=object)
            wider[: len(counts)] += counts
            wider[r:] += counts
            counts = wider
        total, k = 0, 0
        while (total + counts[k]) * 40 <= 2**n:
            total += counts[k]
            k += 1
        cases.append({"data": plain(d), "level": 0.95, "low": float(w[k - 1]), "high": float(w[len(w) - k]),
                      "achieved": float(1 - Fraction(2 * total, 2**n)), "estimate": float(np.median(w))})
    return cases


def mann_whitney():
    cases = []
    for m, n in [(3, 4), (4, 4), (5, 9), (12, 7), (20, 20), (40, 60), (90, 70)]:
        x = np.array(plain(rng.normal(0, 1, m)))
        y = np.array(plain(rng.normal(0.4, 1.3, n)))
        method = "exact" if m + n <= 100 else "asymptotic"
        differences = np.sort([b - a for a in x for b in y])
        for level in [0.9, 0.95]:
            p = lambda t: stats.mannwhitneyu(y - t, x, method=method).pvalue
            found = invert(differences, p, 1 - level + 1e-12)
            cases.append({"x": plain(x), "y": plain(y), "level": level, "u": float(stats.mannwhitneyu(y, x).statistic),
                          "estimate": float(np.median(differences)), "low": found and found[0],
                          "high": found and found[1]})
    tied = {"x": [1, 2, 2, 3, 5, 5], "y": [2, 2, 4, 5, 6]}
    cases.append(tied | {"level": 0.95, "u": float(stats.mannwhitneyu(tied["y"], tied["x"]).statistic),
                         "ties": True})
    return cases


def bootstraps():
    cases = []
    skewed = np.array(plain(rng.lognormal(0, 0.8, 40)))
    for name, statistic in [("mean", np.mean), ("sd", lambda d, axis: np.std(d, axis=axis, ddof=1))]:
        for method in ["BCa", "percentile"]:
            r = stats.bootstrap((skewed,), statistic, n_resamples=100_000, batch=5000, method=method, rng=1)
            spread = float(r.confidence_interval.high - r.confidence_interval.low)
            cases.append({"data": plain(skewed), "statistic": name, "method": method, "width": spread,
                          "low": float(r.confidence_interval.low), "high": float(r.confidence_interval.high)})
    return cases


def lines():
    cases = []
    for n, noise in [(3, 0.1), (12, 3.0), (40, 20.0)]:
        x = np.array(plain(np.arange(1, n + 1) * 10.0))
        y = np.array(plain(7 + 2.5 * x + rng.normal(0, noise, n) + noise * (rng.random(n) < 0.1) * 5))
        fit = stats.linregress(x, y)
        case = {"x": plain(x), "y": plain(y), "slope": float(fit.slope), "intercept": float(fit.intercept),
                "r_squared": float(fit.rvalue**2)}
        if n == 40:
            for name, figure in [("slope", lambda f: f.slope), ("intercept", lambda f: f.intercept),
                                 ("r_squared", lambda f: f.rvalue**2)]:
                ask = lambda a, b: figure(stats.linregress(a, b))
                r = stats.bootstrap((x, y), ask, paired=True, vectorized=False, n_resamples=10_000, method="BCa", rng=2)
                case[name + "_interval"] = [float(r.confidence_interval.low), float(r.confidence_interval.high)]
        cases.append(case)
    return cases


def outliers():
    """Criterion's share by trying every admissible c, the classes by comparing with the fences."""
    cases = []
    for n in [10, 30, 100]:
        for spread in [0.0005, 0.02, 1.0]:
            d = np.array(plain(50 + spread * rng.normal(0, 1, n) + 40 * spread * (rng.random(n) < 0.1)))
            q1, q3 = np.quantile(d, [0.25, 0.75])
            r = q3 - q1
            counts = [int(v) for v in [(d < q1 - 3 * r).sum(), ((d >= q1 - 3 * r) & (d < q1 - 1.5 * r)).sum(),
                      ((d >= q1 - 1.5 * r) & (d <= q3 + 1.5 * r)).sum(),
                      ((d > q3 + 1.5 * r) & (d <= q3 + 3 * r)).sum(), (d > q3 + 3 * r).sum()]]
            mean, var = d.mean(), d.var(ddof=1)
            per, floor = mean / n, mean / n / 2
            clean = min(floor / 4, math.sqrt(var) / math.sqrt(n)) ** 2

            def c_max(x):
                # The root of clean·c² + (var − n·clean + n·d)·c − n²·d = 0 that is not negative.
                gap = (per - x) ** 2
                roots = np.roots([clean, var - n * clean + n * gap, -n * n * gap])
                return math.floor(max(roots.real))

            explained = lambda c: (n - c) / n * (var - (n - c) * clean)
            share = min(explained(1), explained(min(c_max(0), c_max(floor)))) / var
            cases.append({"data": plain(d), "counts": counts, "share": float(share)})
    return cases


def holm():
    """By closed testing: a hypothesis is rejected only if Bonferroni's method rejects every set that holds it."""
    cases = []
    for k in [1, 2, 3, 5, 7]:
        p = plain(rng.random(k) ** 3)
        sets = [s for size in range(1, k + 1) for s in itertools.combinations(range(k), size)]
        adjusted = [max(min(1.0, len(s) * min(p[j] for j in s)) for s in sets if i in s) for i in range(k)]
        cases.append({"p": p, "adjusted": adjusted})
    return cases


FORMS = {"log n": np.log2, "n": lambda n: n, "n log n": lambda n: n * np.log2(n), "n^2": lambda n: n**2,
         "n^3": lambda n: n**3, "2^n": np.exp2}


def growths():
    cases = []
    n = np.array([4, 8, 16, 32, 64, 128, 256], dtype=float)
    for form in ["log n", "n", "n log n", "n^2", "n^3"]:
        cost = np.array(plain((50 + 3 * FORMS[form](n)) * np.exp(rng.normal(0, 0.01, len(n)))))
        squares, fits = {}, {}
        for other, g in FORMS.items():
            design = np.column_stack([1 / cost, g(n) / cost])
            scale = np.abs(design).max(axis=0)
            answer, *_ = np.linalg.lstsq(design / scale, np.ones(len(n)), rcond=None)
            squares[other] = float(((1 - design / scale @ answer) ** 2).sum())
            inverse = np.linalg.inv((design / scale).T @ (design / scale))
            fits[other] = (answer / scale, math.sqrt(inverse[1, 1]) / scale[1])
            if answer[1] <= 0:
                del squares[other]
        best = min(squares, key=squares.get)
        freedom = len(n) - 2
        variance = squares[best] / freedom
        limit = squares[best] + variance * stats.f.ppf(0.95, 1, freedom)
        (a, b), unit = fits[best]
        half = stats.t.ppf(0.975, freedom) * math.sqrt(variance) * unit
        cases.append({"n": plain(n), "cost": plain(cost), "form": best, "intercept": float(a), "slope": float(b),
                      "low": float(b - half), "high": float(b + half),
                      "possible": sorted(f for f in squares if f != best and squares[f] <= limit)})
    return cases


def chebyshev():
    """The smallest possible largest distance to a line, as a linear programme."""
    cases = []
    for k in [3, 6, 25]:
        n = np.sort(rng.choice(np.arange(1, 200), k, replace=False))
        cost = 1000 + 32 * n + rng.integers(-16, 17, k)
        rows = np.vstack([np.column_stack([np.ones(k), n, -np.ones(k)]), np.column_stack([-np.ones(k), -n, -np.ones(k)])])
        r = optimize.linprog([0, 0, 1], A_ub=rows, b_ub=np.concatenate([cost, -cost]), bounds=[(None, None)] * 3)
        cases.append({"n": [int(v) for v in n], "cost": [int(v) for v in cost], "residual": float(r.fun)})
    return cases


def critical_values():
    return {"student": [[level, df, float(stats.t.ppf(0.5 + level / 2, df))]
                        for level in [0.9, 0.95, 0.995] for df in [1, 2, 4, 30, 1000]],
            "fisher": [[p, a, b, float(stats.f.ppf(p, a, b))] for p in [0.9, 0.95] for a in [1, 3] for b in [1, 5, 100]]}


print(json.dumps({
    "quantiles": quantiles(), "summaries": summaries(), "quantile_intervals": quantile_intervals(),
    "signed_rank_distributions": signed_rank_distributions(), "signed_rank_intervals": signed_rank_intervals(),
    "signed_rank_ties": signed_rank_ties(), "mann_whitney": mann_whitney(), "bootstraps": bootstraps(),
    "lines": lines(), "outliers": outliers(), "holm": holm(), "growths": growths(), "chebyshev": chebyshev(),
    "critical_values": critical_values(),
}, separators=(",", ":")).replace("}],", "}],\n").replace("},{", "},\n{"))
