"""Reads series as lines of JSON and prints the places at which another tool's method sees a change, with its time.

    python rivals.py otava|asv < series
"""

import json
import sys
import time


def otava():
    from otava.analysis import compute_change_points

    # It must be a list: from arrays of numpy it returns places that match nothing, or fails.
    return lambda values: [point.index for point in compute_change_points(list(values))[0]]


def asv():
    from asv.step_detect import detect_steps

    return lambda values: [left for left, _, _, _, _ in detect_steps(values)[1:]]


def main():
    method = {"otava": otava, "asv": asv}[sys.argv[1]]()
    for line in sys.stdin:
        values = json.loads(line)
        start = time.process_time()
        places = [int(place) for place in method(values)]
        print(json.dumps({"changes": places, "ms": 1000 * (time.process_time() - start)}), flush=True)


if __name__ == "__main__":
    main()
