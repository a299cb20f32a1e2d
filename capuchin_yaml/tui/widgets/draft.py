"""A text field that acts on its keys in the order in which they were typed."""

from __future__ import annotations

from textual import events
from textual.widgets import TextArea


class Draft(TextArea):
    """A `TextArea` whose own bindings run in its turn, not after later keys.

    Why: a bound key goes up to the app and is run there, while the field already takes the
    keys behind it; with the app busy for a moment, `one, Enter, two` would send `onetwo`.
    """

    async def _on_key(self, event: events.Key) -> None:
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            if await self.app.run_action(binding.action, self):
                event.stop()
                event.prevent_default()
                return
        await super()._on_key(event)
        # Why: the dispatcher would call the parent's handler once more.
        event.prevent_default()
