"""The records of kernel targets: what hardware sets, kernel folders and models say of themselves.

`HARDWARE.toml` is a `HardwareRecord`, `KERNEL.toml` a `KernelRecord`, `MODEL.toml` a `ModelRecord`:
which checkpoints a model serves (`Routing`) apart from how it is served (`Policy`), and both apart
from the kernels. A default stands here and nowhere else. `bedstone.spec.record` reads the records.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]
"""A set, a model, a feature or a quantization: also a folder's name."""

Text = Annotated[str, Meta(pattern=r"\S")]
"""A reason or another text that may not be blank."""

Count = Annotated[int, Meta(ge=0, lt=2**31)]
Size = Annotated[int, Meta(ge=1, lt=2**31)]
Share = Annotated[float, Meta(ge=0, le=1)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]

Vendor = Literal["any", "cpu", "nvidia"]
"""Whose compiler a set's sources are for; a set for `any` holds models and no kernels."""

ModelForm = Literal["decode", "chunk", "batch"]
Quantization = str


class _Record(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of a record: an unknown key is refused."""


class Build(_Record, frozen=True):
    """Compiler flags; those of inherited sets and of wider folders come first, each once."""

    flags: tuple[Text, ...] = ()


class Hardware(_Record, frozen=True):
    """One hardware set.

    `arch` is handed to the compiler and judged against the device as it stands here. `features` are
    the CPU features, in Linux's names, that the set needs beyond those of the set it inherits.
    """

    name: Name
    vendor: Vendor
    arch: Name
    inherits: Name | None = None
    features: tuple[Name, ...] = ()


class HardwareRecord(_Record, frozen=True):
    """`HARDWARE.toml`."""

    hardware: Hardware
    build: Build = Build()


class KernelRecord(_Record, frozen=True):
    """`KERNEL.toml`, of the folder it lies in.

    `shadow` gives a reason for each file of the folder that stands in the place of an inherited
    one, `expected_absent` for each entry (or pattern of entries, with `*` and `?`) that the lane
    may ask for and that this set does not have.
    """

    build: Build = Build()
    shadow: dict[str, Text] = {}
    expected_absent: dict[str, Text] = {}


class ModelType(_Record, frozen=True):
    """Checkpoints that a model serves: every fact given must be the checkpoint's.

    A row with a `hidden_size` goes before one without. Names are those of a `config.json`.
    """

    model_type: Name
    hidden_size: Size | None = None
    intermediate_size: Size | None = None
    num_hidden_layers: Size | None = None
    num_attention_heads: Size | None = None
    num_key_value_heads: Size | None = None
    head_dim: Size | None = None
    linear_num_value_heads: Size | None = None


FACTS: tuple[str, ...] = ModelType.__struct_fields__[1:]
"""The sizes a row may ask for, in the order a message lists them."""


class Routing(_Record, frozen=True):
    """Which checkpoints a model's record is for.

    Where two models claim a checkpoint alike, the one is taken that has a match name in the
    checkpoint's name. `kernels` names the model whose kernel folders serve this one.
    """

    model_types: tuple[ModelType, ...]
    match_names: tuple[Text, ...] = ()
    kernels: Name | None = None


class Preset(_Record, frozen=True):
    """How tokens are sampled where a request does not say; the defaults leave logits as they are.

    `top_k` 0 keeps every token. `min_p` None leaves the server's own, 0 turns the filter off.
    """

    temperature: Annotated[float, Meta(ge=0, le=2)] = 1.0
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    top_k: Count = 0
    min_p: Share | None = None
    presence_penalty: Penalty = 0.0
    frequency_penalty: Penalty = 0.0
    repetition_penalty: Annotated[float, Meta(gt=0, le=2)] = 1.0

    @property
    def penalized(self) -> bool:
        """Whether tokens already there are made less (or more) likely."""
        penalties = (self.presence_penalty, self.frequency_penalty, self.repetition_penalty)
        return penalties != (0.0, 0.0, 1.0)


class Sampling(_Record, frozen=True):
    """A preset for each kind of turn."""

    thinking_text: Preset = Preset()
    thinking_coding: Preset = Preset()
    non_thinking: Preset = Preset()
    tools: Preset = Preset()


class Behavior(_Record, frozen=True):
    """What a server does for the model where a request does not say.

    `thinking_tokens` bounds what is thought, `preserve_thinking` is handed to the chat template
    where it is set, `tool_call_parser` names the dialect of tool calls. `prefer_presets` puts the
    presets above the checkpoint's `generation_config.json`. Last, `min_p` is raised to
    `min_p_floor` and the temperature lowered to `temperature_max`.
    """

    thinking_default: bool = False
    thinking_in_tools: bool = True
    thinking_tokens: Count | None = None
    preserve_thinking: bool | None = None
    tool_call_parser: Name | None = None
    prefer_presets: bool = False
    min_p_floor: Share = 0.0
    temperature_max: Annotated[float, Meta(gt=0, le=2)] | None = None


class Dflash(_Record, frozen=True):
    """The draft model that proposes tokens to this one.

    It proposes `gamma` tokens from the states of the layers `layer_ids`, attending to `window`
    positions (0: to all), with `mask_token_id` where a token is still to be proposed.
    """

    draft_model: Text
    mask_token_id: Count
    layer_ids: tuple[Count, ...]
    gamma: Size = 16
    window: Count = 0


class Policy(_Record, frozen=True):
    """How a model is served; no kernel depends on it."""

    sampling: Sampling = Sampling()
    behavior: Behavior = Behavior()
    dflash: Dflash | None = None


class ModelRecord(_Record, frozen=True):
    """`MODEL.toml`."""

    routing: Routing
    policy: Policy = Policy()
