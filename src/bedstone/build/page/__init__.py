"""A page that draws planned steps: one file of HTML that needs nothing else.

`facts` says what is drawn, `emit` puts it into the page, `page.html`, `page.css` and the scripts
draw it in a browser.
"""
