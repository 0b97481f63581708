"""The judge of bench/peers/race.sh: checks itself, tunes the peers, plays them, prints tables.

    race.py check OUT WORLD...           replays the offers of Vitrine's own policies
    race.py tune SETTINGS WORLD...       chooses the settings of the peers, and writes them
    race.py play SETTINGS OUT WORLD...   plays the peers, and prints them beside the policies in OUT
    race.py finals OUT TUNING WORLD      plays Vowpal Wabbit and LinUCB in one panel, tuned on TUNING, a dump
                                         of the panel at other seeds, for the table of bench/bma.sh

A WORLD is an experiment's directory of `vitrine dump`, OUT the directory of `vitrine reproduce` on the
same seeds. JOBS runs are played at a time, by default one for each processor.
"""

import csv
import json
import math
import multiprocessing
import os
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from players import PEERS

FIRST = "bma-mnl"  # differences are to it


class World:
    """A seed of an experiment, as `vitrine dump` wrote it."""

    def __init__(self, directory, seed, standard=False):
        with np.load(directory / f"seed-{seed}.npz") as arrays:
            self.arrays = {name: arrays[name] for name in arrays}
        if standard:  # by the items of the first round, as a user would
            x = self.arrays["features"]
            sd = x[0].std(axis=0)
            self.arrays["features"] = (x - x[0].mean(axis=0)) / np.where(sd > 0, sd, 1)
        for name in ("features", "revenues", "utilities", "shocks", "optimum"):
            setattr(self, name, self.arrays[name])
        self.rounds = len(self.optimum)

    def choice(self, t, offer):
        """What the customer of round t takes: a position from 1, or 0."""
        value = self.utilities[t, offer] + self.shocks[t, offer + 1]
        best = int(value.argmax()) if len(offer) else 0
        return best + 1 if len(offer) and value[best] > self.shocks[t, 0] else 0

    def loss(self, t, offer):
        """The optimum less the expected revenue of the offer."""
        weight = np.exp(self.utilities[t, offer])
        return self.optimum[t] - weight @ self.revenues[t, offer] / (1 + weight.sum())


def describe(worlds):
    """What world.json says of each dumped experiment."""
    described = {}
    for directory in worlds:
        try:
            described[directory] = json.loads((directory / "world.json").read_text())
        except FileNotFoundError:
            raise SystemExit(f"race: {directory} is no complete dump: it has no world.json") from None
        settings = described[directory]["settings"]
        if settings["revenue"]["kind"] != "one" or settings["constraint"]["kind"] != "at-most":
            raise SystemExit(f"race: {directory}: the peers show the K best of equal revenue, and know no other rule")
    return described


def regrets(out, experiment):
    """The cumulative regrets of regret.csv: by policy, by seed, a list."""
    curves = {}
    with open(out / experiment / "regret.csv", newline="") as file:
        for row in csv.DictReader(file):
            curves.setdefault(row["policy"], {}).setdefault(int(row["seed"]), []).append(float(row["regret"]))
    return curves


def check(out, *worlds):
    """Offers of Vitrine's policies, judged here, have the choices and regrets that Vitrine gives."""
    replayed = 0
    for directory, described in describe(worlds).items():
        curves = regrets(out, described["experiment"])
        for seed in described["seeds"]:
            world = World(directory, seed)
            for policy in (p["label"] for p in described["policies"]):
                offers, total = world.arrays[f"{policy}.offers"], np.zeros(world.rounds)
                for t, row in enumerate(offers):
                    offer = row[row >= 0]
                    if world.choice(t, offer) != world.arrays[f"{policy}.choices"][t]:
                        raise SystemExit(f"race: {directory}, {policy}, seed {seed}: another choice in round {t + 1}")
                    total[t] = (total[t - 1] if t else 0) + world.loss(t, offer)
                exact = np.abs(total - world.arrays[f"{policy}.regret"]).max()
                # regret.csv has nine significant digits.
                printed = np.abs(total - curves[policy][seed])
                if not exact <= 1e-9 or not (printed <= 1e-9 + 5e-9 * np.abs(total)).all():
                    raise SystemExit(
                        f"race: {directory}, {policy}, seed {seed}: the regret differs by {exact:.3g}, "
                        f"and from regret.csv by {printed.max():.3g}"
                    )
                replayed += 1
    if not replayed:
        raise SystemExit("race: the dump has no policy to check the judge with")
    print(f"race: {replayed} runs of Vitrine's policies replayed: equal choices, equal regrets", file=sys.stderr)


def play(job):
    """The final regret and the CPU seconds of a peer on a seed. The judge's own work is not in the seconds."""
    directory, size, seed, peer, setting, *standard = job
    warnings.simplefilter("ignore")  # bayesianbandits warns of each update that stops after its five steps
    world = World(directory, seed, *standard)
    regret, spent = 0.0, -time.process_time()
    player = PEERS[peer](size, seed + 1, **setting)  # contextualbandits takes no seed 0
    for t in range(world.rounds):
        offer = np.array(player.offer(world.features[t].copy()))
        spent += time.process_time()
        if len(set(offer.tolist())) != len(offer) or len(offer) > size:
            raise ValueError(f"{peer} offers {offer} in round {t + 1} of seed {seed}")
        regret += world.loss(t, offer)
        choice = world.choice(t, offer)
        spent -= time.process_time()
        player.observe(offer.tolist(), choice)
    spent += time.process_time()
    return float(regret), spent


def play_all(jobs, what):
    """Plays jobs on JOBS processes; the results do not depend on how many."""
    processes = int(os.environ.get("JOBS") or os.cpu_count())
    results, said = [], time.monotonic()
    # Ctrl-C goes to the parent, which ends the others.
    with multiprocessing.get_context("fork").Pool(processes, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
        for result in pool.imap(play, jobs):
            results.append(result)
            if time.monotonic() - said > 20:
                said = time.monotonic()
                print(f"race: {what}: {len(results)} of {len(jobs)} runs", file=sys.stderr, flush=True)
    return results


def tune(path, *worlds):
    """The best setting of each peer's grid for each experiment, by its mean regret."""
    chosen, described = {peer: {} for peer in PEERS}, describe(worlds)
    candidates = [(d, w, p, s) for d, w in described.items() for p, peer in PEERS.items() for s in peer.grid]
    jobs = [(d, w["settings"]["size"], seed, p, s) for d, w, p, s in candidates for seed in w["seeds"]]
    results, best, at = play_all(jobs, "tuning"), {}, 0
    for directory, world, peer, setting in candidates:
        mean = float(np.mean([regret for regret, _ in results[at : at + len(world["seeds"])]]))
        at += len(world["seeds"])
        experiment = world["experiment"]
        print(f"race: {experiment}, {peer}, {spell(setting)}: {mean:.1f}", file=sys.stderr, flush=True)
        if mean < best.get((peer, experiment), math.inf):
            best[peer, experiment], chosen[peer][experiment] = mean, setting
    path.write_text(json.dumps(chosen, indent=2) + "\n")


MOST = 300  # polynomial features of a peer in finals


def finals(out, tuning, world):
    """Writes the final regrets of two peers at their best settings to OUT, as regret.csv has them.

    The peers see standardised features.
    """
    described = describe([tuning, world])
    settings, seeds, rows = described[world]["settings"], described[world]["seeds"], []
    size, d = settings["size"], settings["features"]
    degree = max(m for m in (1, 2, 3) if m == 1 or math.comb(d + m, m) <= MOST + 1)
    for peer in ("Vowpal Wabbit CCB", "contextualbandits LinUCB"):
        all_settings = PEERS[peer].grid
        grid = [s for s in all_settings if s["degree"] <= degree] or [s | {"degree": degree} for s in all_settings[:3]]
        at = described[tuning]["seeds"]
        results = iter(play_all([(tuning, size, seed, peer, s, True) for s in grid for seed in at], "tuning"))
        best = min(grid, key=lambda s: np.mean([next(results)[0] for _ in at]))
        results = play_all([(world, size, seed, peer, best, True) for seed in seeds], "playing")
        print(f"race: {world.name}, {peer}, {spell(best)}: {np.mean([r for r, _ in results]):.1f}", file=sys.stderr)
        rows += [(world.name, peer, seed, "", r) for seed, (r, _) in zip(seeds, results, strict=True)]
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "regret.csv", "w", newline="") as file:
        csv.writer(file).writerows([("experiment", "policy", "seed", "round", "regret"), *rows])


def cell(regret, first):
    regret, first = np.array(regret), np.array(first)
    few = len(regret) < 2
    text = f"{regret.mean():.1f}" + ("" if few else f" ± {regret.std(ddof=1):.1f}")
    difference = regret - first
    if not difference.any():
        return text
    error = "" if few else f" ± {difference.std(ddof=1) / math.sqrt(len(difference)):.1f}"
    return f"{text} ({difference.mean():+.1f}{error})".replace("-", "−")


def spell(setting):
    return ", ".join(f"{key} {value}" for key, value in setting.items())


def race(path, out, *worlds):
    """Plays the peers, and prints all in Markdown."""
    described, tuned = describe(worlds), json.loads(path.read_text())
    setups = [(peer, how) for peer in PEERS for how in ("as documented", "tuned")]
    jobs = []
    for peer, how in setups:
        for directory in worlds:
            world = described[directory]
            setting = PEERS[peer].documented if how == "as documented" else tuned[peer][world["experiment"]]
            jobs += [(directory, world["settings"]["size"], seed, peer, setting) for seed in world["seeds"]]
    results = iter(play_all(jobs, "playing"))

    rows, seconds = {FIRST: {}}, {}  # by name: regrets by experiment, seconds of all runs
    for directory in worlds:
        with open(out / directory.name / "run.json") as file:
            for policy in json.load(file)["policies"]:
                name = policy["label"]
                rows.setdefault(name, {})[directory.name] = [run["regret"] for run in policy["runs"]]
                seconds.setdefault(name, []).extend(run["seconds"] for run in policy["runs"])
    for peer, how in setups:
        name = f"{peer}, {how}"
        for directory in worlds:
            mine = [next(results) for _ in described[directory]["seeds"]]
            rows.setdefault(name, {})[directory.name] = [regret for regret, _ in mine]
            seconds.setdefault(name, []).extend(spent for _, spent in mine)

    print("| policy | " + " | ".join(d.name for d in worlds) + " | seconds a run |")
    print("|---" * (len(worlds) + 2) + "|")
    for name, by in rows.items():
        cells = [cell(by[d.name], rows[FIRST][d.name]) if d.name in by else "–" for d in worlds]
        print(f"| {name} | " + " | ".join(cells) + f" | {np.mean(seconds[name]):.2f} |")
    print("\nTuned settings:\n")
    for peer, by in tuned.items():
        print(f"- {peer}: " + "; ".join(f"{d.name} {spell(by[described[d]['experiment']])}" for d in worlds))


if __name__ == "__main__":
    commands = {"check": (check, 2), "tune": (tune, 2), "play": (race, 3), "finals": (finals, 3)}
    command, least = commands.get(sys.argv[1] if len(sys.argv) > 1 else "", (None, 0))
    if command is None or len(sys.argv) < 2 + least:
        raise SystemExit(__doc__)
    try:
        command(*map(Path, sys.argv[2:]))
    except KeyboardInterrupt:
        raise SystemExit("race: interrupted") from None
