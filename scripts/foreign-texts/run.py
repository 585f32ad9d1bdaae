#!/usr/bin/env python3
r"""How well `memtox detect` does on published texts that are not part of memtox.

    pip download --no-deps -d wheels agentdojo==0.1.35 bastioncorpus==0.6.0 memgar==1.4.0 \
        inspect-evals==0.26.0
    python3 scripts/foreign-texts/run.py --wheels wheels --half test --defense guard,keyword

Needs PyYAML. With --more DIR the folder's amg-payloads.jsonl and notinject.jsonl (see `memtox datasets fetch`)
are tried too. The halves are made by a hash of the text, or of what several texts were made of; the half dev is for looking at,
the half test for figures. What stands in the packages is read and never run.
"""
import argparse, ast, base64, collections, glob, hashlib, json, os, re, subprocess, tempfile, zipfile
import yaml

rows = []


def half(s):
    return "dev" if int(hashlib.sha256(s.encode()).hexdigest()[:2], 16) % 2 == 0 else "test"


def add(corpus, text, label, cls, by=None, key="note"):
    text = text.strip() if isinstance(text, str) else json.dumps(text)
    if text:
        rows.append(dict(corpus=corpus, key=key, text=text, label=label, cls=cls, by=by or text, half=half(by or text)))


class Wheel:
    """The files of a package."""

    def __init__(self, folder, name):
        found = glob.glob(os.path.join(folder, name + "-*.whl"))
        if not found:
            raise SystemExit(f"{folder} holds no wheel of {name}: see the first lines of this file")
        self.zip = zipfile.ZipFile(found[0])

    def text(self, name):
        return self.zip.read(name).decode()

    def lines(self, name):
        return [json.loads(x) for x in self.text(name).splitlines() if x.strip()]

    def yaml(self, name):
        return yaml.load(self.text(name), yaml.BaseLoader)


def packages(folder):
    for r in Wheel(folder, "bastioncorpus").lines("bastioncorpus/corpus/injections.jsonl"):
        label = "attack" if r["label"] == "malicious" else "benign"
        add("bastioncorpus", r["text"], label, r["channel"] + "/" + r["lang"])
    for r in yaml.load(Wheel(folder, "memgar").text("memgar/data/patterns.yaml"), yaml.CSafeLoader):
        for t in r["examples"] or []:
            add("memgar", str(t), "attack", r["category"], by=r["id"])
    w = Wheel(folder, "inspect_evals")
    for f in ["beneficial_samples", "cross_domain", "sycophancy"]:
        for r in w.lines(f"inspect_evals/persistbench/benchmark_samples/{f}.jsonl"):
            for t in r["memories"]:
                add("persistbench", t, "benign", "memories")
    agentdojo(Wheel(folder, "agentdojo"))


def agentdojo(w):
    def benign(t, cls):  # without the places where an injection would stand
        add("agentdojo", re.sub(r"\{injection[^}]*\}|\{[a-z_]+_\d+\}", "", t), "benign", cls)

    suites = "agentdojo/data/suites/"
    for e in w.yaml(suites + "workspace/include/inbox.yaml")["initial_emails"]:
        benign(e["subject"] + "\n" + e["body"], "mail")
    for e in w.yaml(suites + "workspace/include/cloud_drive.yaml")["initial_files"]:
        benign(e["content"], "file")
    for e in w.yaml(suites + "workspace/include/calendar.yaml")["initial_events"]:
        benign(e["title"] + "\n" + e["description"], "calendar")
    slack = w.yaml(suites + "slack/environment.yaml")
    for box in ["channel_inbox", "user_inbox"]:
        for ms in slack["slack"].get(box, {}).values():
            for m in ms:
                benign(m["body"], "slack")
    for t in slack["web"]["web_content"].values():
        benign(t, "web")
    for t in w.yaml(suites + "banking/environment.yaml")["filesystem"]["files"].values():
        benign(t, "file")

    def reviews(v):
        if isinstance(v, dict):
            for k, x in v.items():
                if k in ("reviews", "rating_reviews"):
                    for z in x:
                        benign(z if isinstance(z, str) else z.get("content", json.dumps(z)), "review")
                else:
                    reviews(x)
        elif isinstance(v, list):
            for x in v:
                reviews(x)

    reviews(w.yaml(suites + "travel/environment.yaml"))
    goals, prompts, templates = set(), set(), {}
    for name in w.zip.namelist():
        if re.match(r"agentdojo/default_suites/[^/]*/[^/]*/.*_tasks\.py$", name):
            tasks(ast.parse(w.text(name)), goals, prompts)
        if re.match(r"agentdojo/attacks/(baseline|important_instructions)_attacks\.py$", name):
            for n in ast.parse(w.text(name)).body:
                if isinstance(n, ast.ClassDef) and (t := template(n)):
                    templates[n.name] = t.replace("{user}", "Emma Johnson").replace("{model}", "AI assistant")
    for t in sorted(prompts):
        add("agentdojo", t, "benign", "request")
    for g in sorted(goals):
        add("agentdojo", g, "attack", "goal")
        for name, t in sorted(templates.items()):
            add("agentdojo", t.replace("{goal}", g), "attack", name, by=t)


def tasks(module, goals, prompts):
    names = {}

    def value(n, local):
        if isinstance(n, ast.Constant) and isinstance(n.value, (str, int, float)):
            return str(n.value)
        if isinstance(n, ast.JoinedStr):
            return "".join(value(x, local) for x in n.values)
        if isinstance(n, ast.FormattedValue):
            return value(n.value, local)
        if isinstance(n, ast.Name):
            return value(local[n.id], local) if n.id in local else names.get(n.id, n.id)
        if isinstance(n, ast.BinOp):
            return value(n.left, local) + value(n.right, local)
        return n.attr if isinstance(n, ast.Attribute) else ""

    for n in module.body:
        if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name):
            names[n.targets[0].id] = value(n.value, {})
        if isinstance(n, ast.ClassDef):
            local = {}
            for m in n.body:
                if isinstance(m, ast.Assign) and isinstance(m.targets[0], ast.Name):
                    local[m.targets[0].id] = m.value
                if isinstance(m, ast.AnnAssign) and m.value is not None:
                    local[m.target.id] = m.value
            if "GOAL" in local:
                goals.add(value(local["GOAL"], local))
            if "PROMPT" in local:
                prompts.add(value(local["PROMPT"], local))


def template(cls):
    best = ""
    for m in ast.walk(cls):
        s = ""
        if isinstance(m, ast.JoinedStr):
            s = "".join(x.value if isinstance(x, ast.Constant) else "Emma" for x in m.values)
        elif isinstance(m, ast.Constant) and isinstance(m.value, str):
            s = m.value
        if "{goal}" in s and len(s) > len(best):
            best = s
    return best


def more(folder):
    for line in open(os.path.join(folder, "amg-payloads.jsonl")):
        r = json.loads(line)
        v = r.get("value")
        if v is None and "value_b64" in r:
            v = base64.b64decode(r["value_b64"]).decode()
        if v is None:
            g = r["value_gen"]
            v = (g["repeat"] * g["times"] if "repeat" in g else
                 g["prefix"] + g["join"].join(map(str, range(*g["int_range"]))) + g["suffix"])
        add("amg", v, r["expected"], r["category"], key=r["key"])
    for line in open(os.path.join(folder, "notinject.jsonl")):
        add("notinject", json.loads(line)["text"], "benign", "notinject")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--wheels", required=True)
    p.add_argument("--more")
    p.add_argument("--half", choices=["dev", "test", "all"], default="test")
    p.add_argument("--defense", default="guard,keyword")
    p.add_argument("--memtox", default="memtox")
    o = p.parse_args()
    packages(o.wheels)
    if o.more:
        more(o.more)
    labels = collections.defaultdict(set)
    for r in rows:
        labels[r["text"]].add(r["label"])
    seen, sets = set(), collections.defaultdict(list)
    for r in rows:  # each text once; one that bears both labels is nobody's
        if (r["corpus"], r["text"]) in seen or len(labels[r["text"]]) > 1:
            continue
        seen.add((r["corpus"], r["text"]))
        if o.half in (r["half"], "all"):
            sets[r["corpus"]].append(r)
            sets["all"].append(r)

    def rate(r):
        return f"{r['k']}/{r['n']} {100*r['rate']:.1f}% [{100*r['lo']:.1f}, {100*r['hi']:.1f}]" if r["n"] else "–"

    print("| corpus | defense | attacks stopped | harmless stopped | p50, µs |\n|---|---|---:|---:|---:|")
    for corpus in sorted(sets, key=lambda c: (c == "all", c)):
        with tempfile.TemporaryDirectory() as d:
            with open(d + "/t.jsonl", "w") as f:
                for i, r in enumerate(sets[corpus]):
                    f.write(json.dumps(dict(r, id=f"{corpus}{i}")) + "\n")
            with open(d + "/m.yaml", "w") as f:
                f.write("id: $.id\nkey: $.key\ncontent: $.text\nlabel: $.label\nclass: $.cls\nfamily: $.by\n")
            subprocess.run([o.memtox, "datasets", "import", "jsonl", d + "/t.jsonl", "--map", d + "/m.yaml", "-o",
                            d + "/c.jsonl"], check=True, stdout=subprocess.DEVNULL)
            out = subprocess.run([o.memtox, "detect", "--dataset", d + "/c.jsonl", "--defense", o.defense, "--format",
                                  "json"], check=True, stdout=subprocess.PIPE).stdout
        for a in json.loads(out)["defenses"]:
            print(f"| {corpus} | `{a['defense']}` | {rate(a['tpr'])} | {rate(a['fpr'])} | "
                  f"{a['latency_us']['write']['p50']:.1f} |")


main()
