"""Which family writes the steps of an architecture."""

from collections.abc import Callable, Mapping

from bedstone.checkpoint.config import ModelConfig
from bedstone.errors import CallerError, WeightError
from bedstone.graph.builder import Builder
from bedstone.graph.step import FormName, Ref, StepGraph
from bedstone.models.body import Body
from bedstone.models.deepseek import deepseek
from bedstone.models.gemma3 import gemma3
from bedstone.models.llama import llama
from bedstone.models.qwen3 import qwen3
from bedstone.models.qwen3_next import qwen3_next
from bedstone.spec.dtype import FormatName

Family = Callable[[Body], tuple[Ref, Ref]]

FAMILIES: Mapping[str, Family] = {
    "LlamaForCausalLM": llama,
    "MistralForCausalLM": llama,
    "Qwen2ForCausalLM": llama,
    "Qwen3ForCausalLM": qwen3,
    "Qwen2MoeForCausalLM": llama,
    "Qwen3MoeForCausalLM": qwen3,
    "Gemma3ForCausalLM": gemma3,
    "Qwen3NextForCausalLM": qwen3_next,
    "Qwen3_5ForCausalLM": qwen3_next,
    "Qwen3_5MoeForCausalLM": qwen3_next,
    "DeepseekV2ForCausalLM": deepseek,
    "DeepseekV3ForCausalLM": deepseek,
}


def step_graph(  # noqa: PLR0913  (a step's sizes, each a keyword)
    config: ModelConfig,
    form: FormName,
    *,
    formats: Mapping[str, FormatName],
    rows: int,
    capacity: int,
    row_param: str | None = None,
    sampled: bool = False,
) -> StepGraph:
    """One step of a model, checked.

    `formats` maps each canonical constant name to how the checkpoint holds it. `rows` are the rows
    of a chunk or the sequences of a batch; with `row_param` a chunk takes up to `rows`, as many as
    the param says. `capacity` is the most positions a sequence may reach (rows of its tables).
    A step that is `sampled` draws its tokens, another takes the likeliest.

    An architecture no family writes, or a constant the checkpoint lacks, is a `WeightError`; sizes
    that make no step are a `CallerError`.
    """
    family = FAMILIES.get(config.architecture)
    if family is None:
        known = ", ".join(f"`{name}`" for name in FAMILIES)
        raise WeightError(
            f"`{config.name}` is of architecture `{config.architecture}`; known are {known}"
        )
    if rows < 1 or (form == "chunk" and rows > capacity):
        raise CallerError(f"a {form} step of {rows} rows does not fit a capacity of {capacity}")
    build = Builder(config.name, form, rows, row_param=row_param)
    return build.build(*family(Body(config, formats, build, capacity, sampled)))
