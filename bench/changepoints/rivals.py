"""Reads series as lines of JSON and prints the places at which another tool's method sees a change, with its time.

    python rivals.py otava|asv|edivisive|pelt < series
"""

import json
import math
import sys
import time


def otava():
    from otava.analysis import compute_change_points

    # The input must be a list: for numpy arrays it returns wrong places, or fails.
    return lambda values: [point.index for point in compute_change_points(list(values))[0]]


def asv():
    from asv.step_detect import detect_steps

    return lambda values: [left for left, _, _, _, _ in detect_steps(values)[1:]]


def edivisive():
    from signal_processing_algorithms.energy_statistics.energy_statistics import e_divisive

    # Its default of 0.05 names several times as many false points.
    return lambda values: e_divisive(values, pvalue=0.01, permutations=100)


def pelt():
    import numpy
    import ruptures

    def places(values):
        values = numpy.array(values)
        scaled = numpy.log(values) if (values > 0).all() else values
        # The penalty of a cut is in units of the noise's variance, estimated from differences, which steps hardly
        # change.
        apart = numpy.abs(numpy.diff(scaled))
        variance = (1.4826 * numpy.median(apart)) ** 2 / 2 or numpy.var(scaled) or 1.0
        price = 6 * variance * math.log(len(values))
        return ruptures.Pelt(model="l2", min_size=3, jump=1).fit(scaled).predict(pen=price)[:-1]

    return places


def main():
    method = {"otava": otava, "asv": asv, "edivisive": edivisive, "pelt": pelt}[sys.argv[1]]()
    for line in sys.stdin:
        values = json.loads(line)
        start = time.process_time()
        places = sorted(int(place) for place in method(values))
        print(json.dumps({"changes": places, "ms": 1000 * (time.process_time() - start)}), flush=True)


if __name__ == "__main__":
    main()
