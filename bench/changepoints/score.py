"""Scores the places that a detector reports by the true ones."""


class Score:
    def __init__(self):
        self.hits = self.found = self.truth = self.quiet = self.series = 0
        self.ms = 0.0

    def add(self, truth, found, tolerance, ms=0.0):
        """Pairs each true place with at most one reported place, the nearest first."""
        pairs = sorted((abs(t - f), t, f) for t in truth for f in found if abs(t - f) <= tolerance)
        paired = set(), set()
        for _, t, f in pairs:
            if t not in paired[0] and f not in paired[1]:
                paired[0].add(t)
                paired[1].add(f)
        self.hits += len(paired[0])
        self.found += len(found)
        self.truth += len(truth)
        self.quiet += 0 if truth else len(found)
        self.series += 1
        self.ms += ms

    @property
    def precision(self):
        return self.hits / self.found if self.found else 1.0

    @property
    def recall(self):
        return self.hits / self.truth if self.truth else 1.0

    @property
    def f1(self):
        return 2 * self.hits / max(self.found + self.truth, 1)
