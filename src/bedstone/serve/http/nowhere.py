"""What whoever asks at a path or by a method that is none is told. Pure."""

from collections.abc import Collection, Mapping

from starlette.exceptions import HTTPException

from bedstone.serve.http.refusal import Refusal

METHOD = 405
OFFERED = "`/openapi.json` lists what there is"
NOT_HERE: Mapping[str, str] = {
    "/v1/responses": "ask `/v1/chat/completions`",
    "/v1/messages": "ask `/v1/chat/completions`",
    "/v1/embeddings": "this server makes text only",
}
"""What to do instead of asking for what other servers offer."""


def nowhere(method: str, path: str, error: HTTPException, routes: Collection[str]) -> Refusal:
    """The refusal of a request that fits none of the routes."""
    asked = f"{method} `{path}`"
    if error.status_code == METHOD:
        allow = (error.headers or {})["Allow"]
        return Refusal(
            METHOD, f"{asked}: expected {allow}", code="method", headers={"allow": allow}
        )
    # most often the base of the URL has no `/v1`, or one too many
    near = (f"/v1{path}", path.removeprefix("/v1"), path.rstrip("/"))
    found = next((each for each in near if each in routes), None)
    hint = f"did you mean `{found}`?" if found else NOT_HERE.get(path, OFFERED)
    return Refusal(error.status_code, f"{asked}: no such path: {hint}", code="path")
