"""The options of `bedstone serve`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Log(StrEnum):
    """Errors alone; rates every few seconds while there is work; a line a request as well."""

    off = "off"
    rates = "rates"
    requests = "requests"


class ToolParser(StrEnum):
    """How a model writes calls; `auto` asks its chat template and its record."""

    auto = "auto"
    none = "none"
    hermes = "hermes"
    qwen3_coder = "qwen3_coder"
    llama3 = "llama3"


class Reasoning(StrEnum):
    """Whether thoughts are told apart; `auto` asks the chat template."""

    auto = "auto"
    on = "on"
    off = "off"


HostOption = Annotated[str, typer.Option(help="Address to listen at.")]
PortOption = Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")]
NameOption = Annotated[
    str | None, typer.Option(help="What clients call the model; by default its own name.")
]
KeyFileOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Keys, a line each; or one in BEDSTONE_API_KEY."),
]
WithoutKeyOption = Annotated[
    bool, typer.Option("--without-key", help="Listen at a public address without a key.")
]
OriginOption = Annotated[
    list[str] | None,
    typer.Option(metavar="ORIGIN", help="A web page's origin that may ask; * for any. Repeatable."),
]
LogOption = Annotated[
    Log, typer.Option(help="What is written on stderr beside errors: rates, requests too, or off.")
]
AtOnceOption = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Most requests at once: 16, or what the package steps."),
]
TokensOption = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Tokens the cache holds; as many as fit if not given."),
]
QueueOption = Annotated[
    int, typer.Option(min=0, metavar="N", help="Most requests that wait; more are refused.")
]
ChunkOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Most tokens of a prompt in one call.")
]
BudgetOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Most tokens of prompts between two steps.")
]
RowsOption = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Rows of a step: of the widest rounds, or 1 for none."),
]
ReuseOption = Annotated[
    bool, typer.Option("--reuse/--no-reuse", help="Keep what prompts begin with.")
]
HostMemoryOption = Annotated[
    int, typer.Option(min=0, metavar="MIB", help="Memory for kept prompts that are in the way.")
]
ToolParserOption = Annotated[ToolParser, typer.Option(help="How the model writes tool calls.")]
ReasoningOption = Annotated[
    Reasoning, typer.Option(help="Whether thoughts are told apart from answers.")
]
TimeoutOption = Annotated[
    float, typer.Option(min=0.1, metavar="S", help="Seconds an answer may take.")
]
GraceOption = Annotated[
    float, typer.Option(min=0, metavar="S", help="Seconds answers have when told to stop.")
]
FrontsOption = Annotated[
    int | None,
    typer.Option(
        min=0, max=64, metavar="N", help="Processes that speak HTTP; 0: the engine's own does."
    ),
]
BodyOption = Annotated[int, typer.Option(min=1, metavar="MIB", help="Largest body of a request.")]
