"""Series of real measurements with changes that people or other tools have marked, from public repositories. These are
cloned into the user's cache, or read from a folder of clones; this repository has no copy."""

import json
import re
import subprocess

from detectors import CACHE

REPOSITORIES = {
    "treeherder": "https://github.com/mozilla/treeherder",
    "TCPD": "https://github.com/alan-turing-institute/TCPD",
}


def repository(name, folder=None):
    """The git directory of a clone: `folder/name`, or a new clone in the cache."""
    place = (folder or CACHE) / name
    if not place.exists() and folder is None:
        clone = ["git", "clone", "--quiet", "--bare", "--depth", "1", "--filter=blob:none", REPOSITORIES[name], place]
        subprocess.run(clone, check=True, timeout=600)
    return place


def show(place, path):
    return subprocess.run(
        ["git", "-C", place, "show", f"HEAD:{path}"], check=True, capture_output=True, text=True
    ).stdout


def mozilla(folder=None):
    """Seven series of Talos and the changes that Mozilla's own tests expect: (name, values, places)."""
    place = repository("treeherder", folder)
    tests = show(place, "tests/perfalert/test_analyze.py")
    found = []
    for name, times in re.findall(r'\("(\w+\.json)", \[([\d, ]*)\]\)', tests):
        runs = json.loads(show(place, f"tests/sample_data/artifacts/performance/graphs/{name}"))["test_runs"]
        runs.sort(key=lambda run: run[2])
        at = [run[2] for run in runs]
        found.append((name, [run[3] for run in runs], [at.index(int(time)) for time in re.findall(r"\d+", times)]))
    return found


def turing(folder=None):
    """The univariate series without gaps of the Turing Change Point Dataset: (name, values, places by annotator)."""
    place = repository("TCPD", folder)
    marked = json.loads(show(place, "annotations.json"))
    paths = subprocess.run(
        ["git", "-C", place, "ls-tree", "-r", "--name-only", "HEAD", "datasets"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    found = []
    for path in paths:
        name = re.fullmatch(r"datasets/(\w+)/\1\.json", path)
        if not name:
            continue
        data = json.loads(show(place, path))
        values = data["series"][0]["raw"]
        if data["n_dim"] == 1 and None not in values:
            found.append((name[1], values, marked[name[1]]))
    return found


def covering(marked, found, margin=5):
    """The F1 of van den Burg & Williams, "An Evaluation of Change Point Detection Algorithms" (2020), §4.2: precision of what
    the found places among all marked ones, recall as the mean over annotators; the start counts as a change."""
    found = set(found) | {0}
    each = [set(places) | {0} for places in marked.values()]

    def hits(truth):
        rest, count = set(found), 0
        for place in sorted(truth):
            near = [(abs(place - other), other) for other in rest if abs(place - other) <= margin]
            if near:
                count += 1
                rest.discard(min(near)[1])
        return count

    precision = hits(set().union(*each)) / len(found)
    recall = sum(hits(truth) / len(truth) for truth in each) / len(each)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
