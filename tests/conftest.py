"""Every process that tests start takes interrupts, though a shell's background job ignores them."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
