"""Pages that are played: every file written, every command typed, every output compared."""

from __future__ import annotations

from tests.docs.pages import page
from tests.docs.shell import Shell


def test_the_tutorial_leads_where_it_says(checkout: Shell) -> None:
    checkout.play(page("tutorial/first-agent.md"))


def test_the_programs_of_the_client_reference_do_what_they_print(open_shop: Shell) -> None:
    open_shop.play(page("reference/client.md"))
