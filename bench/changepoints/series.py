"""Series with planted changes, from a seed."""

import math
import random

KINDS = ["normal", "t3", "skewed", "ar1", "bimodal", "spikes"]
ODDITIES = ["quantised", "modes", "trend", "doubling"]
SLOW = ["trend", "wave", "walk"]


def noise(draw, kind, n):
    """n values of noise of standard deviation about one."""
    gauss = lambda: draw.gauss(0, 1)
    if kind == "normal":
        return [gauss() for _ in range(n)]
    if kind == "t3":
        chi = lambda: sum(gauss() ** 2 for _ in range(3)) / 3
        return [gauss() / math.sqrt(chi()) / math.sqrt(3) for _ in range(n)]
    if kind == "skewed":
        return [draw.expovariate(1) - 1 for _ in range(n)]
    if kind == "ar1":
        state, values = gauss(), []
        for _ in range(n):
            state = 0.6 * state + 0.8 * gauss()
            values.append(state)
        return values
    if kind == "bimodal":
        return [0.6 * gauss() + (1.5 if draw.random() < 0.3 else 0) for _ in range(n)]
    if kind == "spikes":
        return [gauss() + (5 + 10 * draw.random() if draw.random() < 0.03 else 0) for _ in range(n)]
    raise ValueError(kind)


def planted(seed, number, n, smallest, largest, shifts=None, kind=None, even=False):
    """A series with 0 to 3 shifts of `smallest` to `largest` (relative) in noise of 1 to 5 %; no stretch between shifts is
    shorter than a tenth of it. Half of the shifts are smaller than the geometric mean of the two; with `even`, than the
    arithmetic one."""
    draw = random.Random(f"{seed}/{number}/{n}")
    kind = kind or KINDS[number % len(KINDS)]
    scale = draw.uniform(0.01, 0.05)
    if shifts is None:
        # Four of fifteen series have no shift. With six kinds of noise, every kind gets some of these.
        shifts = [0, 1, 2, 3, 1, 2, 0, 3, 1, 2, 0, 3, 1, 2, 0][number % 15]
    gap, places = n // 10, []
    while len(places) < shifts:
        place = draw.randrange(gap, n - gap + 1)
        if all(abs(place - other) >= gap for other in places):
            places.append(place)
    places.sort()
    logs = [scale * z for z in noise(draw, kind, n)]
    for place in places:
        share = draw.random()
        size = math.log1p(
            smallest + share * (largest - smallest) if even else smallest * (largest / smallest) ** share
        )
        step = size if draw.random() < 0.5 else -size
        for i in range(place, n):
            logs[i] += step
    return kind, [100 * math.exp(v) for v in logs], places


def odd(seed, number, n):
    """A series that is typical of real machines and fits no kind of noise, with its true changes."""
    draw = random.Random(f"{seed}/odd/{number}/{n}")
    kind = ODDITIES[number % len(ODDITIES)]
    place = draw.randrange(n // 4, 3 * n // 4)
    step = lambda i: 1.1 if i >= place else 1.0
    if kind == "quantised":  # A clock of 10 ms and readings of about 200 ms.
        return kind, [10 * round(20 * step(i) * math.exp(0.015 * draw.gauss(0, 1))) for i in range(n)], [place]
    if kind == "modes":  # It alternates between two distant levels.
        values, high = [], False
        while len(values) < n:
            high = not high
            values += [(20700 if high else 530) * math.exp(0.02 * draw.gauss(0, 1)) for _ in range(draw.randint(4, 25))]
        return kind, values[:n], []
    if kind == "trend":  # Three per cent over the whole range, a bit with each version.
        return kind, [100 * math.exp(0.03 * i / n + 0.02 * draw.gauss(0, 1)) for i in range(n)], []
    # Only the noise doubles.
    return kind, [100 * math.exp((0.03 if i >= place else 0.015) * draw.gauss(0, 1)) for i in range(n)], []


def uneven(number, n, kind, factor, share):
    """A series without steps, whose noise grows to 2 % by `factor` after this share of its values."""
    draw = random.Random(f"uneven/{number}/{n}/{kind}/{factor}/{share}")
    scale = lambda i: 0.02 / factor if i < share * n else 0.02
    return [100 * math.exp(scale(i) * z) for i, z in enumerate(noise(draw, kind, n))]


def slow(seed, number, n, kind, steps=True, background=True):
    """A series of noise of 0.5 to 4 %, with 1 to 3 shifts of 2 to 15 % or without, on a slow background: a trend of 1
    to 6 standard deviations, 1 to 5 waves of 0.7 to 2.5, or a random walk of 1 to 4; or the same series without
    background."""
    draw = random.Random(f"{seed}/slow/{kind}/{number}/{n}/{steps}")
    scale = 0.005 * 8 ** draw.random()
    noises = [noise for noise in KINDS if noise != "ar1"]
    logs = noise(draw, noises[number % len(noises)], n)
    if kind == "trend":
        size = draw.uniform(1, 6) * draw.choice([-1, 1])
        curve = [size * i / n for i in range(n)]
    elif kind == "wave":
        size, periods, start = draw.uniform(0.7, 2.5), draw.uniform(1, 5), draw.random()
        curve = [size * math.sin(2 * math.pi * (periods * i / n + start)) for i in range(n)]
    else:
        size, curve = draw.uniform(1, 4) / math.sqrt(n), [0.0]
        while len(curve) < n:
            curve.append(curve[-1] + size * draw.gauss(0, 1))
    logs = [scale * (z + (c if background else 0.0)) for z, c in zip(logs, curve)]
    places = []
    while steps and len(places) < 1 + number % 3:
        place = draw.randrange(n // 10, n - n // 10)
        if all(abs(place - other) >= n // 10 for other in places):
            places.append(place)
    places.sort()
    for place in places:
        step = math.log1p(0.02 * 7.5 ** draw.random()) * draw.choice([-1, 1])
        for i in range(place, n):
            logs[i] += step
    return kind, [100 * math.exp(v) for v in logs], places
