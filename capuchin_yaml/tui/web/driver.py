"""The driver of a TUI that a web server runs: it ends with that server, however that ended."""

from __future__ import annotations

import os
import threading

from textual import messages
from textual.drivers.web_driver import WebDriver

END_S = 5.0
"""After its server is gone an app that does not end by then is ended."""


class LinkedDriver(WebDriver):
    """Textual's web driver, which would live on when nobody is at the other end any more."""

    def run_input_thread(self) -> None:
        """Read input until the server closes it; then the app is over too."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            last = threading.Timer(END_S, os._exit, (1,))
            last.daemon = True
            last.start()
            self.send_message(messages.ExitApp())
