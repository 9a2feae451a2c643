// Opens the dashboard in the terminal of textual.js, once the font is there: the size of the
// terminal is measured with it. The address of the page has no say in anything.
"use strict";

const terminal = document.getElementById("terminal");
const socket = new URL("terminal", location.href);
socket.protocol = location.protocol === "https:" ? "wss:" : "ws:";
socket.search = "";
terminal.dataset.sessionWebsocketUrl = socket.href;
history.replaceState(null, "", location.pathname);

function ended(event) {
  const why = event.reason || "The connection to the server was lost.";
  document.getElementById("why").textContent = why;
  document.getElementById("ended").hidden = false;
  document.getElementById("again").focus();
}

// textual.js does not say why a connection has ended.
const Plain = window.WebSocket;
window.WebSocket = class extends Plain {
  constructor(...given) {
    super(...given);
    this.addEventListener("close", ended);
  }
  send(data) {
    if (this.readyState === Plain.OPEN) super.send(data);
  }
};

function focus() {
  const keys = document.querySelector(".xterm-helper-textarea");
  if (keys) keys.focus();
}

function begin() {
  window.onload(new Event("load"));
  focus();
}

async function start() {
  const faces = ["14px", "bold 14px", "italic 14px"].map((face) => `${face} "Roboto Mono"`);
  await Promise.all(faces.map((face) => document.fonts.load(face))).catch(() => {});
  const script = document.createElement("script");
  script.src = "static/textual.js";
  script.onload = begin;
  document.head.append(script);
}

document.getElementById("again").addEventListener("click", () => location.reload());
window.addEventListener("focus", focus);
window.addEventListener("load", start);
