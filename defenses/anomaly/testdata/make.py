#!/usr/bin/env python3
"""Writes small.json: vectors and what memgar's detector, as it is described,
answers about them. Written from the description, with fractions where that is
possible, to check the Go code against something that shares nothing with it."""
import json, math, random
from statistics import mean, stdev

random.seed(20260301)
Z, K, Q, LEAST = 3.0, 5, 0.95, 20
D = 6


def norm(v): return math.sqrt(math.fsum(x * x for x in v))


def dist(a, b):
    if norm(a) == 0 or norm(b) == 0:
        return 1.0
    return 1.0 - math.fsum(x * y for x, y in zip(a, b)) / (norm(a) * norm(b))


def around(c, s): return [round(x + random.gauss(0, s), 5) for x in c]


class Cluster:
    def __init__(self): self.seen, self.dists, self.nn = [], [], []

    def centre(self): return [math.fsum(c) / len(self.seen) for c in zip(*self.seen)]

    def neighbours(self, v):
        ds = sorted(dist(v, s) for s in self.seen[-200:])[:K]
        return math.fsum(ds) / len(ds)

    def observe(self, v):
        self.seen.append(v)
        self.dists.append(dist(v, self.centre()))
        self.nn.append(self.neighbours(v))

    def threshold(self):
        if len(self.nn) < 20: return None
        s = sorted(self.nn[-500:])
        return s[int(Q * (len(s) - 1))]


cs = {"a": Cluster(), "b": Cluster(), "few": Cluster()}
centres = {"a": [1, 0.2, 0, 0, 0.1, 0], "b": [0, 0, 1, 0.3, 0, 0], "few": [0, 1, 0, 0, 0, 0.5]}
base = []
for name, n in (("a", 40), ("b", 30), ("few", 4)):
    for _ in range(n):
        v = around(centres[name], 0.08)
        cs[name].observe(v)
        base.append({"cluster": name, "vector": v})

stats = {}
for name, c in cs.items():
    sd = stdev(c.dists) if len(c.dists) > 1 else 0.0
    stats[name] = {"count": len(c.seen), "mean_distance": mean(c.dists), "stddev": sd, "centroid": c.centre(),
                   "recent_samples": len(c.seen), "density_history_len": len(c.nn), "density_threshold_q": c.threshold()}


def score(v, cluster, compare):
    c = cs.get(cluster)
    have = len(c.seen) if c else 0
    out = {"cluster": cluster, "centroid_distance": 0.0, "z_score": 0.0, "is_outlier": False, "nearest_neighbor_distance": None,
           "is_density_anomaly": False, "cross_cluster_collision": None, "severity": "none"}
    if have < LEAST:
        out["explanation"] = f"insufficient baseline (have {have}, need {LEAST}); skipping scoring"
        return out
    d = dist(v, c.centre()); sd = stdev(c.dists)
    z = (d - mean(c.dists)) / sd
    nn = c.neighbours(v)
    best, hit = nn, None
    for o in compare or []:
        if o != cluster and o in cs and cs[o].neighbours(v) < best:
            best, hit = cs[o].neighbours(v), o
    why = []
    if z >= Z: why.append(f"centroid-distance z-score={z:.2f}")
    if nn > c.threshold(): why.append("sparse local neighborhood (k-NN density anomaly)")
    if hit: why.append(f"closer to cluster '{hit}' than declared cluster")
    outlier, sparse = z >= Z, nn > c.threshold()
    out.update(centroid_distance=d, z_score=z, is_outlier=outlier, nearest_neighbor_distance=nn, is_density_anomaly=sparse, cross_cluster_collision=hit,
               severity="high" if outlier and sparse else "medium" if outlier or hit else "low" if sparse else "none",
               explanation="; ".join(why) or "within normal embedding-space envelope")
    return out


cands = []
for name, v, cl, cmp_ in (
    ("ordinary", around(centres["a"], 0.08), "a", ["a", "b"]),
    ("of the other cluster", around(centres["b"], 0.08), "a", ["a", "b"]),
    ("far from both", [0, 0, 0, 0, 0, 1], "a", ["b"]),
    ("a little off", around(centres["a"], 0.2), "a", None),
    ("too small a baseline", around(centres["few"], 0.08), "few", ["a"]),
    ("no such cluster", around(centres["a"], 0.08), "none", ["a"]),
    ("longer", around(centres["b"], 0.08) + [0.5, 0.5], "b", ["a"]),
    ("zero", [0] * D, "b", ["a"]),
):
    cands.append({"name": name, "vector": v, "cluster": cl, "compare_clusters": cmp_, "verdict": score(v, cl, cmp_)})

json.dump({"config": {"min_observations": LEAST}, "baseline": base, "stats_after_baseline": stats, "candidates": cands}, open("small.json", "w"), indent=1)
