"""The built-in page: a chat, and pictures of the batch and the cache.

It is one file when it is sent; nothing in it comes from elsewhere, and its policy says so.
"""

from bedstone.serve.http.page.response import page_response

__all__ = ["page_response"]
