"""Random manifests worth cutting: layers over a few workspaces, states, derived carries."""

from dataclasses import dataclass, field

WORKSPACES = ("w0", "w1", "w2")
INPUTS = ("ids", "pos")
DTYPE = "f32"
SHAPE = ["tokens", 4]


def some(rng, values, count=1):
    """`count` of the values, or all there are, none twice, in random order."""
    return [values[index] for index in rng.permutation(len(values))[:count]]


@dataclass(slots=True)
class Draft:
    """Calls under construction, with the ops they need."""

    rng: object
    ops: dict = field(default_factory=dict)
    buffers: dict = field(default_factory=dict)
    states: dict = field(default_factory=dict)

    def call(self, label, *bound):
        """A call that binds (direction, argument) pairs; its op is named by its interface."""
        params = [f"{way} {_type(arg)}" for way, arg in bound]
        name = f"op{'.'.join(p.replace(' ', '_') for p in params)}{self.rng.integers(3)}"
        launch = {"module": "k", "entry": name, "block": [32, 1, 1], "grid": ["tokens", 1, 1]}
        self.ops[name] = {"params": params, "impl": {"launches": [launch]}}
        for _, arg in bound:
            if "state" in arg:
                self.states.setdefault(arg["state"], {"bytes_per_token": 64})
        return {"op": name, "args": [arg for _, arg in bound], "label": label}


def _type(arg):
    if "state" in arg:
        return "state"
    return "buffer<i32>" if arg["buf"] in {"ids", "pos", "next"} else f"buffer<{DTYPE}>"


def pipeline_manifest(rng):
    """A manifest with two driven programs, and derive and once programs for some of them."""
    draft = Draft(rng)
    carries = [f"d{n}" for n in range(rng.integers(3))]
    programs = {
        "prefill": {"batch": {"groups": 1, "rows": "tokens"}, "calls": _calls(draft, carries)},
        "decode": {"batch": {"groups": 2, "rows": 1}, "graph": True},
    }
    programs["decode"]["calls"] = _calls(draft, carries)
    used = {
        a["buf"] for p in programs.values() for c in p["calls"] for a in c["args"] if "buf" in a
    }
    programs |= _loading(draft, [name for name in carries if name in used])
    return {
        "schema_version": 7,
        "model": "random",
        "vars": {"tokens": {"max": 16, "axis": "rows"}, "seqs": {"max": 4, "axis": "groups"}},
        "states": draft.states,
        "buffers": _buffers(programs),
        "modules": {"k": {"source": "k.so", "sha256": "a" * 64}},
        "ops": draft.ops,
        "programs": programs,
    }


def _calls(draft, carries):
    rng, written, calls = draft.rng, [], []
    count = int(rng.integers(4, 9))
    for index in range(count):
        bound = [("in", {"buf": name}) for name in some(rng, INPUTS, rng.integers(2))]
        if index == 0:
            bound = [("in", {"buf": "ids"})]
        pool = [*written, *carries, "weight"]
        bound += [("in", {"buf": name}) for name in some(rng, pool, rng.choice((1, 1, 2)))]
        if rng.random() < 0.6:
            offset = 8 * index if rng.random() < 0.9 else 8 * int(rng.integers(count))
            bound.append(
                (some(rng, ("inout", "in"))[0], {"state": f"kv{index // 3}", "offset": offset})
            )
        name = some(rng, WORKSPACES)[0]
        way = "inout" if name in written and rng.random() < 0.4 else "out"
        offset = 8 if way == "out" and rng.random() < 0.15 else 0
        bound.append((way, {"buf": name, **({"offset": offset} if offset else {})}))
        written = [*dict.fromkeys([*written, name])]
        calls.append(draft.call(f"c{index}", *bound))
    last = [("in", {"buf": written[-1]}), ("out", {"buf": "next"})]
    if rng.random() < 0.3:
        last.append(("inout", {"buf": "kept"}))
    calls.append(draft.call("head", *last))
    return calls


def _loading(draft, carries):
    """Each carry made by a derive or once program, some from the one before."""
    programs = {}
    for name, before in zip(carries, [None, *carries], strict=False):
        source = {"buf": before} if before and draft.rng.random() < 0.6 else {"buf": "weight"}
        calls = [draft.call(f"make {name}", ("in", source), ("out", {"buf": name}))]
        if draft.rng.random() < 0.3:
            calls.append(
                draft.call(f"more {name}", ("in", {"buf": "weight"}), ("inout", {"buf": name}))
            )
        kind = "once" if programs and draft.rng.random() < 0.5 else "derive"
        if any(p.get("once") for p in programs.values()):
            kind = "once"
        programs[f"load {name}"] = {kind: True, "calls": calls}
    return programs


def _buffers(programs):
    declared = {
        "ids": {"dtype": "i32", "shape": ["tokens"], "kind": "input", "fill": "token"},
        "pos": {"dtype": "i32", "shape": ["tokens"], "kind": "input", "fill": "position"},
        "next": {"dtype": "i32", "shape": ["seqs"], "kind": "output", "fill": "tokens"},
        "kept": {"dtype": DTYPE, "shape": SHAPE, "kind": "inout"},
        "weight": {"dtype": DTYPE, "shape": [8], "kind": "weight", "bind": [{"tensor": "w"}]},
        **{name: {"dtype": DTYPE, "shape": SHAPE, "kind": "workspace"} for name in WORKSPACES},
        **{f"d{n}": {"dtype": DTYPE, "shape": SHAPE, "kind": "carry"} for n in range(3)},
    }
    used = {
        a["buf"] for p in programs.values() for c in p["calls"] for a in c["args"] if "buf" in a
    }
    return {name: buffer for name, buffer in declared.items() if name in used}
