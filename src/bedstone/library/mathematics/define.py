"""A kernel's Definition at given sizes: its tensors and axes, and what it computes."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from string import Template
from textwrap import indent

from bedstone.errors import DefinitionError
from bedstone.library.kernel import Kernel
from bedstone.library.mathematics.dense import DENSE
from bedstone.library.mathematics.family import Family
from bedstone.library.mathematics.heads import HEADS
from bedstone.library.mathematics.joined import JOINED
from bedstone.library.mathematics.mixture import MIXTURE
from bedstone.library.mathematics.operands import (
    Operand,
    operands,
    rounded_codes,
    rounded_tables,
)
from bedstone.library.mathematics.pieces import pieces_for
from bedstone.library.mathematics.recurrent import RECURRENT
from bedstone.library.mathematics.sampling import SAMPLING
from bedstone.spec import formula
from bedstone.spec.definition import (
    Axis,
    ConstAxis,
    Definition,
    ExprAxis,
    TensorSpec,
    VarAxis,
)
from bedstone.spec.manifest import ScalarParam

FAMILIES: Mapping[str, Family] = {
    **DENSE,
    **HEADS,
    **MIXTURE,
    **RECURRENT,
    **SAMPLING,
    **JOINED,
}

VARIABLE = frozenset({"rows", "seqs", "count"})
"""Sizes a Workload states, where an input tells them; all others are part of the Definition."""

_NAMED = ("width", "k", "n", "n0", "n1", "n2", "n3", "heads", "groups", "dk", "dv", "channels",
          "channels0", "experts", "vocab", "head_dim")  # fmt: skip
_DIGITS = 8

Sizes = Mapping[str, int | float]


def family_of(entry: str) -> Family:
    """The mathematics of an entry: that of the longest name it begins with.

    A `DefinitionError` where there is none.
    """
    words = entry.split("_")
    for end in range(len(words), 0, -1):
        found = FAMILIES.get("_".join(words[:end]))
        if found is not None:
            return found
    raise DefinitionError(f"nobody says what the kernel `{entry}` computes")


def define(kernel: Kernel, sizes: Sizes, entry: str | None = None) -> Definition:
    """What a kernel computes, at these sizes.

    Args:
        kernel: Of the catalog.
        sizes: A number for each scalar parameter that no Workload states, and for each axis that is
            no parameter. Further ones are ignored.
        entry: What the catalog calls it, where it is compiled under another name.

    Returns:
        A Definition whose name tells the entry, what it rounds to, and its sizes.

    Raises:
        DefinitionError: a size is missing, or nobody says what the kernel computes.
    """
    kernel = replace(kernel, entry=entry or kernel.entry)
    family = family_of(kernel.entry)
    try:
        return _define(kernel, family, {**family.defaults, **sizes})
    except KeyError as error:
        raise DefinitionError(f"`{kernel.entry}` is not told `{error.args[0]}`") from None


def _define(kernel: Kernel, family: Family, sizes: Sizes) -> Definition:
    tensors = operands(kernel, family)
    told = {axis for t in tensors if t.read for axis in t.shape} & VARIABLE
    texts = dict.fromkeys(extent for t in tensors for extent in t.shape)
    names = dict.fromkeys(name for text in texts for name in _names(text))
    scalars = [p.name for p in kernel.params if isinstance(p.type, ScalarParam)]
    consts = {name: sizes[name] for name in (*scalars, *names) if name not in told}
    return Definition(
        name=f"{kernel.entry}{_rounding(kernel)}{_suffix(consts)}",
        op_type=family.op_type,
        axes=_axes(texts, consts, told),
        inputs={t.name: _spec(t) for t in tensors if t.read},
        outputs={t.name: _spec(t) for t in tensors if t.written},
        reference=_reference(kernel, family, tensors, consts),
        tags=("fused",) if "_" in kernel.entry else (),
        description=f"What the kernel `{kernel.entry}` computes.",
        custom_inputs=_MAKER if _made(family, tensors) else None,
    )


# --- axes -----------------------------------------------------------------------------------------


def _names(text: str) -> list[str]:
    return re.findall(r"[a-z_]\w*", text)


def axis_name(text: str) -> str:
    """An extent as the name of an axis: itself, or a computed one's, which formulas can name."""
    if text.isidentifier() or text.isdecimal():
        return text
    name = re.sub(r"\W+", "_", text).strip("_")
    return name if name.isidentifier() else f"size_{name}"


def _axes(texts: Mapping[str, None], consts: Sizes, told: set[str]) -> dict[str, Axis]:
    axes: dict[str, Axis] = {name: VarAxis() for name in sorted(told)}
    axes |= {n: ConstAxis(v) for n, v in consts.items() if isinstance(v, int) and v >= 0}
    computed = [text for text in texts if axis_name(text) != text]
    return axes | {axis_name(text): _computed(text, consts) for text in computed}


def _computed(text: str, consts: Sizes) -> Axis:
    """A constant where everything in it is one: FlashInfer-Bench has no computed axes."""
    sizes = {name: value for name, value in consts.items() if isinstance(value, int)}
    known = sizes.keys() >= set(_names(text))
    return ConstAxis(formula.size(text, sizes)) if known else ExprAxis(text)


def _spec(tensor: Operand) -> TensorSpec:
    return TensorSpec(tuple(map(axis_name, tensor.shape)), tensor.dtype)


def _rounding(kernel: Kernel) -> str:
    """What tells kernels of one entry apart that round differently."""
    codes, tables = rounded_codes(kernel), rounded_tables(kernel)
    return (f"_codes_{codes}" if codes else "") + (f"_tables_{tables}" if tables else "")


def _suffix(consts: Sizes) -> str:
    """The sizes that tell most, and a digest of all."""
    spelled = "".join(f"_{name}{consts[name]}" for name in _NAMED if name in consts)
    text = ",".join(f"{name}={value!r}" for name, value in sorted(consts.items()))
    return f"{spelled}_{hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]}" if consts else ""


# --- the reference --------------------------------------------------------------------------------

_MAKER, _CLEAR = "inputs", "clear_of"

_DRAWN, _CANDIDATES = "rows", 8
"""Of what many are drawn where choices have to be clear, and how many for each that is taken."""

_KINDS = {
    "float32": "float()",
    "bfloat16": "bfloat16()",
    "float16": "half()",
    "int8": "to(torch.int8)",
    "int32": "int()",
    "int64": "long()",
    "uint8": "to(torch.uint8)",
}
"""How values become an element type."""


def _reference(kernel: Kernel, family: Family, tensors: list[Operand], consts: Sizes) -> str:
    params = {param.name for param in kernel.params}
    lines = [*_dense(kernel, tensors), *_body(family, params), *_results(kernel, family, tensors)]
    arguments = ", ".join(t.name for t in tensors if t.read)
    run = f"def run({arguments}):\n" + indent("\n".join(lines), "    ")
    parts = [run, *_clear(kernel, family, tensors), *_maker(family, tensors)]
    given = {name: repr(value) for name, value in {**family.defaults, **consts}.items()}
    text = "\n\n\n".join(Template(part).substitute(given) for part in parts)
    return f"import torch\n\n\n{pieces_for(text)}\n\n\n{text}\n".replace("\n\n\n\n\n\n", "\n\n\n")


def _body(family: Family, params: set[str]) -> Iterator[str]:
    """The family's lines, but for those about parameters the entry does not have."""
    for line in family.body.strip("\n").split("\n"):
        guard, mark, rest = line.partition(": ")
        if line.startswith("?") and mark:
            if guard[1:] in params:
                yield rest
        else:
            yield line


def _dense(kernel: Kernel, tensors: list[Operand]) -> Iterator[str]:
    """Every input as dense float64 or int64 under its plain name."""
    params = {param.name for param in kernel.params}
    for tensor in tensors:
        if not tensor.read:
            continue
        if tensor.piece:
            if tensor.rounded:
                yield f"{tensor.plain} = {tensor.name}.double()"
            elif tensor.piece == "q":
                yield f"{tensor.plain} = dequantized({tensor.name}, {tensor.name[:-1]}s)"
        elif tensor.format is not None:
            raw = f"of_panels({tensor.name}, {tensor.block})" if tensor.panels else tensor.name
            yield f"{tensor.name} = {tensor.format}({raw})"
        else:
            kind = "long" if tensor.dtype.startswith("int") else "double"
            yield f"{tensor.name} = {tensor.name}.{kind}()"
        if {f"{tensor.plain}_row", f"{tensor.plain}_width"} <= params and tensor.piece in ("", "q"):
            yield (
                f"{tensor.plain} = part({tensor.plain}, ${tensor.plain}_unit, "
                f"${tensor.plain}_width, {_dollars(tensor.dense)})"
            )


def _dollars(text: str) -> str:
    return re.sub(r"[a-z_]\w*", r"$\g<0>", text)


def _results(kernel: Kernel, family: Family, tensors: list[Operand]) -> Iterator[str]:
    """Every output in its own element type, in order."""
    made = {tensor.name: tensor for tensor in tensors if tensor.written}
    last = family.results.split()[-1]
    for name in family.results.split():
        codes = made.get(f"{name}q")
        if codes is not None:
            scaled = f"{name}q, {name}s, {name}z = quantized({name})"
            yield f"{name}q = {name}" if codes.rounded else scaled
    if "table" in made and "table" not in family.shapes:
        column = "$column" if any(p.name == "column" for p in kernel.params) else "0"
        yield f"table = placed(table, slot, {last}, {column})"
    values = [f"{t.name}.{_KINDS[t.dtype]}" for t in tensors if t.written]
    yield f"return {', '.join(values)}"


# --- inputs ---------------------------------------------------------------------------------------


def _made(family: Family, tensors: list[Operand]) -> dict[str, str]:
    """How each input is made that no plain random numbers will do for, by its name or names."""
    made: dict[str, str] = {}
    for tensor in tensors:
        if not tensor.read:
            continue
        if tensor.piece == "q" and not tensor.rounded:
            stem, (rows, width) = tensor.name[:-1], map(_variables, tensor.shape)
            made[f"{stem}q, {stem}s, {stem}z"] = f"codes_of({rows}, {width})"
        elif tensor.halves:
            rows, width = tensor.stored
            shape = f"({_variables(rows)}, {_variables(width)})"
            places, most = tensor.halves
            plain = f"blocks_of({shape}, {tensor.block}, {places}, {most})"
            made[tensor.name] = f"in_panels({plain}, {tensor.block})" if tensor.panels else plain
        elif not tensor.piece and tensor.name in family.makes:
            made[tensor.name] = family.makes[tensor.name]
        elif family.clear and tensor.piece in ("", "q"):
            made[tensor.name] = _drawn(tensor)
    return dict(sorted(made.items(), key=lambda item: _depends(item[1], made)))


def _depends(text: str, made: Mapping[str, str]) -> bool:
    """Whether an input is made from others that are."""
    return any(re.search(rf"\b{name}\b", text) for names in made for name in names.split(", "))


def _variables(text: str) -> str:
    """An extent in terms of constants and of the sizes a Workload states."""
    return re.sub(r"[a-z_]\w*", lambda m: m[0] if m[0] in VARIABLE else f"${m[0]}", text)


def _drawn(tensor: Operand) -> str:
    """Plain random numbers: of weights so large that products are as large as what they read."""
    shape = ", ".join(map(_variables, tensor.shape))
    values = f"torch.randn({shape})"
    if tensor.shape[0] != _DRAWN:
        values = f"({values} / {_variables(tensor.shape[-1])} ** 0.5)"
    return f"{values}.{_KINDS[tensor.dtype]}"


def _clear(kernel: Kernel, family: Family, tensors: list[Operand]) -> Iterator[str]:
    """The function that says how clear each row's choice is."""
    if family.clear:
        lines = [*_dense(kernel, tensors), *_body(family, {param.name for param in kernel.params})]
        text = indent("\n".join([*lines, f"return {family.clear}"]), "    ")
        yield f"def {_CLEAR}({', '.join(t.name for t in tensors if t.read)}):\n{text}"


def _maker(family: Family, tensors: list[Operand]) -> list[str]:
    made = _made(family, tensors)
    if not made:
        return []
    used = "\n".join(made.values())
    needed = [name for name in sorted(VARIABLE) if re.search(rf"(?<!\$)\b{name}\b", used)]
    many = f"{_CANDIDATES} * " if family.clear else ""
    lines = [f"{name} = {many}axes[{name!r}]" for name in needed]
    lines += [f"{names} = {text}" for names, text in made.items()]
    names = {name: name for key in made for name in key.split(", ")}
    if family.clear:
        asked = ", ".join(t.name for t in tensors if t.read)
        first = f"{_CLEAR}({asked}).argsort(descending=True)[:axes[{_DRAWN!r}]]"
        lines.append(f"first = {first}")
        names |= {t.name: f"{t.name}[first]" for t in tensors if t.read and t.shape[0] == _DRAWN}
    given = ", ".join(f"{name!r}: {text}.to(device)" for name, text in names.items())
    lines.append(f"return {{{given}}}")
    return [f"def {_MAKER}(axes, device):\n" + indent("\n".join(lines), "    ")]
