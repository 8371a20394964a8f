"""The OpenAI API over an engine: requests in, events out, and the manners of a server."""
