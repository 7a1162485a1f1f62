"""Keeps lists of ten numbers so that memory grows in a known shape: SHAPE N."""

import math
import sys

shape, count = sys.argv[1], int(sys.argv[2])
kept, cache, latest = [], {}, None


def work():
    global latest
    if shape == "base":
        kept.extend([i] * 10 for i in range(300000))
    for i in range(1, count + 1):
        latest = [i] * 10
        if shape in ("leak", "base") or (shape == "fifty" and i % 50 == 0):
            kept.append(latest)
        elif shape == "root" and math.isqrt(i) ** 2 == i:
            kept.append(latest)
        elif shape == "cache":
            cache[i % 20000] = latest
        elif shape == "log" and i & (i - 1) == 0:
            kept.append([i] * 8192)


work()
