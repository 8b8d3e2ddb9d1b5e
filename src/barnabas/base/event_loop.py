"""The event loop of nodes and of the registry: uvloop where it is installed."""

import asyncio


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A new loop, not yet the current one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
