// Changes the token of the address for a ticket, and opens the terminal with it.
"use strict";

const word = document.getElementById("word");
const terminal = document.getElementById("terminal");

function say(text) {
  word.textContent = text;
  word.style.display = "block";
}

async function begin() {
  // The token stays in this tab and out of the address line, history and bookmarks.
  const given = location.hash.slice(1);
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", "/");
  }
  const token = sessionStorage.getItem("token");
  if (!token) {
    say("Open the whole address that `capuchin tui --web` printed: the part after # is the key.");
    return;
  }
  const answer = await fetch("/enter", {
    method: "POST",
    headers: { Authorization: "Bearer " + token },
  });
  if (!answer.ok) {
    sessionStorage.removeItem("token");
    say((await answer.text()) + " Open the address that `capuchin tui --web` prints now.");
    return;
  }
  const { ticket, name } = await answer.json();
  document.title = "capuchin · " + name;
  terminal.className = "textual-terminal";
  terminal.dataset.sessionWebsocketUrl = "ws://" + location.host + "/ws/" + ticket;
  const script = document.createElement("script");
  script.src = "/static/js/textual.js";
  script.onload = () => {
    // The script begins when the page has loaded, which it may have or not by now: begin once.
    const open = window.onload;
    window.onload = null;
    open();
  };
  document.head.append(script);
  new MutationObserver(() => {
    if (document.body.classList.contains("-closed")) {
      terminal.style.display = "none";
      say("This visit is over. Reload the page to come back; conversations go on.");
    }
  }).observe(document.body, { attributes: true, attributeFilter: ["class"] });
}

begin().catch((error) => say("The server did not answer: " + error.message));
