"""Texts that tokenizers cut in ways of their own."""

TEXTS = (
    "",
    " ",
    "Hello, world!",
    "  two  spaces   three\n\n\tand a tab \r\n",
    "def f(x):\n    return x**2  # 3.14159e-05\n\n\nclass A: pass",
    "In 1492, 12345678 ships cost $99.95; ½ of ٣٤ and Ⅷ.",
    "I'm, you're, we'LL, they'd — “quoted” … naïve café",
    "日本語のテキスト、中文字符。한국어 текст עברית العربية",
    "emoji 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 e\u0301 \u200b zero width",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|><|im_start|> <|endoftext|>x<repo_name>",
    "\x00\x07\x1b[0m\x7f\x85\xa0\u2028",
    "a" * 300,
)
