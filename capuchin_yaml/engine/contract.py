"""The names and shapes that workflow, activities, worker and client agree on.

Imports nothing but nouns and the standard library, so that the workflow sandbox can load it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from capuchin_yaml.spec import JsonValue

WORKFLOW = "CapuchinAgent"
TASK_QUEUE_PREFIX = "capuchin-yaml."

# Updates; each takes exactly one request and answers in the task that accepted it.
SEND_MESSAGE = "send_message"
DECIDE = "decide"
CANCEL_TURN = "cancel_turn"
CLOSE = "close"
LATE_RESULT = "late_result"
MIGRATE = "migrate"
REVOKE = "revoke"
RENAME = "rename"
CLAIM = "claim"

# Queries; each takes exactly one sealed `Ask`.
STATE = "state"
EVENTS = "events"
TRANSCRIPT = "transcript"
DEFINITION = "definition"
CLOSED_STATE = "closed_state"
"""What a closed run hands on to the run that opens it again."""

INLINE = "capuchin-inline"
"""Payload metadata key of what external storage leaves alone."""

# Activities.
PIN_DEFINITION = "pin_definition"
JUDGE = "judge"
CHECK_DECISION = "check_decision"
ASK_GATE = "ask_gate"
NOTIFY = "notify"
CALL_MODEL = "call_model"
CALL_TOOL = "call_tool"
PREVIEW_TOOL = "preview_tool"
UNTIL_RESUMED = "until_resumed"
FETCH_CLOSED = "fetch_closed"

# Error types of ApplicationError, in one place so that raise and handling cannot diverge.
REFUSED = "Refused"
"""The request is wrong and was not kept; saying it again will not help."""
ROLLING_OVER = "RollingOver"
"""The conversation is moving to a new run; the client repeats with the same id."""
MODEL_REJECTED = "ModelRejected"
MODEL_UNAVAILABLE = "ModelUnavailable"
NO_DEFINITION = "NoDefinition"
CONVERSATION_FAILED = "ConversationFailed"
PAUSED = "Paused"
"""The agent takes up no turn now; asked again until it does."""

# Search attributes, and the memo keys of lists and inbox.
SA_PROJECT = "CapuchinProject"
SA_AGENT = "CapuchinAgent"
SA_STATUS = "CapuchinStatus"
SA_DUE = "CapuchinDue"
SA_TOOLS = "CapuchinTools"
SA_GROUPS = "CapuchinGroups"
SEARCH_ATTRIBUTES: Mapping[str, str] = {
    SA_PROJECT: "Keyword",
    SA_AGENT: "Keyword",
    SA_STATUS: "Keyword",
    SA_DUE: "Datetime",
    SA_TOOLS: "KeywordList",
    SA_GROUPS: "KeywordList",
}
STATUS_OPEN = "open"
STATUS_WAITING = "waiting"
STATUS_CLOSED = "closed"
STATUS_FAILED = "failed"
MAX_TITLE_BYTES = 240
MEMO_TITLE = "CapuchinTitle"
MEMO_INBOX = "CapuchinInbox"
MEMO_ITEMS = 8
"""Most items the memo carries; the detail view reads the workflow."""
MEMO_ARGUMENTS = 200
"""Characters of arguments the memo carries of each item."""

MAX_MESSAGE_BYTES = 256 * 1024
MAX_RESULT_BYTES = 64 * 1024
MAX_RECEIPT_BYTES = 16 * 1024
MAX_PREVIEW_BYTES = 4 * 1024
MAX_REASON_BYTES = 8 * 1024
MAX_START_BYTES = 64 * 1024
PAGE_BYTES = 512 * 1024
"""Most bytes of JSON one query answers; the server refuses answers over 2 MB."""
REQUEST_AGE_S = 600.0
"""Oldest request that is still taken, and most that a clock may be ahead; answers by id are
kept for twice as long, so a recorded request can never be played back as a new one."""
CLAIM_S = 300.0
"""How long a claim is shown."""
MAX_EDIT_BYTES = 64 * 1024
MAX_SIGNATURE_BYTES = 8 * 1024
MAX_NOTICES = 200
"""Notices that wait to be sent; with more the oldest are dropped."""
MAX_GRANTS = 100
"""Grants that one conversation may hold."""
MAX_GRANT_TIMES = 1_000
MAX_QUEUED = 100
"""Messages that may wait behind the running turn."""
MAX_RECENT_REQUESTS = 5_000
"""Requests kept by id; more than this within twice `REQUEST_AGE_S` are refused."""
MAX_CARRIED_BYTES = 900 * 1024
"""Most of the model's window that a roll-over carries; one payload over 2 MB would be refused."""

ROLL_OVER_EVENTS = 2_000
ROLL_OVER_BYTES = 2 * 1024 * 1024


def task_queue(project: str) -> str:
    """The one task queue of a project."""
    return TASK_QUEUE_PREFIX + project


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What every request to a conversation carries."""

    conversation: str
    """The workflow id, so that a request recorded in one conversation is void in another."""
    id: str
    """The caller's own; a repeat with the same id gets the same answer, in any later run."""
    by: str
    """Who asks, as asserted by the client."""
    client: str
    """Program and place, such as `cli@host`."""
    sent_at: str
    """UTC, ISO 8601."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartConversation(Request):
    """The input of the workflow, of the first run and (with `carried`) of each later one."""

    agent: str
    project: str
    variables: Mapping[str, JsonValue] = field(default_factory=dict)
    injected: Mapping[str, JsonValue] = field(default_factory=dict)
    first_run_id: str = ""
    """Empty for the first run; a later run is refused when it does not name its chain."""
    carried: Mapping[str, JsonValue] | None = None
    """State of the run before; None for the first."""
    reopens: str = ""
    """The closed run that a first run opens again; its state is fetched by a worker."""


NO_START = StartConversation(
    conversation="", id="", by="", client="", sent_at="", agent="", project=""
)
"""Stands for a start that was not sealed or not whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendMessage(Request):
    """Say something to the agent. Its id is the message's."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decide(Request):
    """Answer an item, bound to what was shown."""

    item: str
    digest: str
    """The whole digest of the item's revision."""
    choice: str
    reason: str = ""
    result: str = ""
    """For the choice `happened`: what the tool would have answered."""
    arguments: str = ""
    """For the choice `edit`: the JSON object that shall run instead, judged like the model's."""
    grant: Mapping[str, JsonValue] | None = None
    """For the choice `approve`: what else it allows in this conversation,
    `{scope: call or tool, times: most uses or None, until: UTC time or None}`."""
    signature: str = ""
    """SSH signature, armored, over what `signed.statement` says of this decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelTurn(Request):
    """End the running turn; open calls get results marked cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Close(Request):
    """End the conversation for good."""

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoke(Request):
    """Take a grant back; calls that it let through already are not undone."""

    grant: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Request):
    """Say that one is looking at an item; binds nobody and fades after five minutes."""

    item: str
    process: str = ""
    """Where one looks from: machine, process number and start; empty is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrate(Request):
    """Take the agent as it is on the worker's disk, from the next turn on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename(Request):
    """Give the conversation a title; it replaces the one made of the first message."""

    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LateResult(Request):
    """A worker reports a call that ended after it had been given up.

    Status is ok or error with what a one-attempt call gave, or ended: it runs no more.
    """

    call_id: str
    digest: str
    status: str
    text: str
    artifacts: Mapping[str, JsonValue] = field(default_factory=dict)
    receipt: Mapping[str, JsonValue] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The one argument of every query."""

    conversation: str
    start: int = 0
    """First offset wanted, of events or of transcript entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinDefinition:
    """Ask the worker for the agent's definition as it is on its disk now."""

    conversation: str
    run_id: str
    agent: str
    variables: Mapping[str, JsonValue]
    injected: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPause:
    """Ask whether the agent takes up new turns now."""

    conversation: str
    run_id: str
    project: str
    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchClosed:
    """Ask a closed run of the same conversation for its state."""

    conversation: str
    run_id: str
    closed_run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Ask for the verdicts on the calls of one reply; none of it enters history."""

    conversation: str
    run_id: str
    spec: Mapping[str, JsonValue]
    definition_hash: str
    injected: Mapping[str, JsonValue]
    calls: tuple[Mapping[str, JsonValue], ...]
    """Each `{call_id, tool, input, problem}`, `tool` being the name as the model wrote it."""
    grants: tuple[Mapping[str, JsonValue], ...] = ()
    """What persons allowed in this conversation, oldest first; see `policy.grants`."""
    variables: Mapping[str, JsonValue] = field(default_factory=dict)
    """As given at the start."""
    tallies: Mapping[str, JsonValue] = field(default_factory=dict)
    """By identity: what ran or is open before the first of these calls."""
    untrusted: bool = False
    now: str = ""
    """UTC, ISO 8601."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckDecision:
    """Ask the worker whether this decision counts as its maker's."""

    conversation: str
    run_id: str
    by: str
    choice: str
    approvers: tuple[str, ...]
    """Groups that may decide; none: anyone."""
    earlier: Mapping[str, bool]
    """Who approved before, to be looked up again, and whether that was signed."""
    statement: str
    """What a signature must cover."""
    signature: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskGate:
    """Ask the operator's policy service about one call."""

    conversation: str
    run_id: str
    key: str
    """Idempotency key: the same when the same question is repeated."""
    agent: str
    call_id: str
    tool: str
    alias: str
    effect: str
    distribution: str
    arguments: str
    digest: str
    definition_hash: str
    injected: Mapping[str, JsonValue]
    config: Mapping[str, JsonValue]
    verdict: str
    """Of all other sources: allow or ask."""
    requested_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """Tell whom the operator's config names that something waits."""

    conversation: str
    run_id: str
    notice: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallModel:
    """Ask for one model reply; only what the worker cannot already have is in here."""

    conversation: str
    run_id: str
    definition_hash: str
    first_entry: int
    """Place in the transcript at which the model's window begins."""
    entries_before: int
    digest_before: str
    """Count and chained digest of the window without `new_entries`."""
    new_entries: tuple[Mapping[str, JsonValue], ...]
    first_call: int
    """Number that the reply's first tool call gets."""
    pin: int = 1
    """How often the definition was pinned; each time the prompt may differ."""
    pausable_in: str = ""
    """At a turn's first step the project, in which the agent may be paused: then the answer is
    `{paused}` and no model is asked. Empty for later steps: a turn that began goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTool:
    """Run one call with exactly these arguments."""

    conversation: str
    run_id: str
    first_run_id: str
    call_id: str
    n: int
    tool: str
    """Identity."""
    arguments: str
    """Canonical JSON text."""
    digest: str
    """What was judged (and approved); a worker that would run anything else refuses."""
    definition_hash: str
    config: Mapping[str, JsonValue]
    injected: Mapping[str, JsonValue]
    timeout_s: float
    one_attempt: bool
    entry: int
    """Which entry into the tool this is, from 1; a second one follows only a decision to run
    again, or a word that the tool was never entered."""
    preview_hash: str = ""
    """Of the preview that was shown when a person was asked; empty when there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewTool:
    """Ask what one call would do, before a person is asked whether it may."""

    conversation: str
    run_id: str
    first_run_id: str
    call_id: str
    n: int
    tool: str
    arguments: str
    digest: str
    definition_hash: str
    config: Mapping[str, JsonValue]
    injected: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Unsealed:
    """What a payload decodes to when it does not carry the project's seal; never to be acted on."""
