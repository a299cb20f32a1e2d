"""Pages that are played: every file written, every command typed, every output compared."""

from __future__ import annotations

from tests.docs.pages import page
from tests.docs.shell import Shell


def test_the_tutorial_leads_where_it_says(checkout: Shell) -> None:
    checkout.play(page("tutorial/first-agent.md"))


def test_the_programs_of_the_client_reference_do_what_they_print(open_shop: Shell) -> None:
    open_shop.play(page("reference/client.md"))


def test_decisions_from_the_terminal_go_as_the_page_shows(open_shop: Shell) -> None:
    open_shop.play(page("how-to/approve-from-the-terminal.md"))


def test_a_script_answers_as_the_page_shows(shop: Shell) -> None:
    shop.play(page("how-to/test-offline.md"))


def test_a_listing_is_exported_as_the_page_shows(shop: Shell) -> None:
    shop.play(page("how-to/publish-a-listing.md"))


def test_a_file_is_repaired_as_the_page_shows(shop: Shell) -> None:
    shop.play(page("how-to/repair-a-file.md"))


def test_an_agent_of_another_format_is_converted_as_the_page_shows(shop: Shell) -> None:
    shop.play(page("how-to/convert.md"))
