// Updates the page while it is visible: fetches the same address again, and replaces main if that has
// changed. Keeps focus, scrolling, and open details.
const every = 4000;
const lost = document.getElementById("lost");
const pause = document.getElementById("pause");
let tag = "";
let paused = false;
let ended = false;

// A plot that is wider than the screen shows the newest day.
for (const plot of document.querySelectorAll(".wrap:has(.bars)")) plot.scrollLeft = plot.scrollWidth;

const focusable = "a[href], button, input:not([type=hidden]), select, summary, [tabindex]";
const nameOf = (e) => e.getAttribute("href") ?? e.getAttribute("name") ?? e.getAttribute("aria-label") ?? e.textContent;

// busy reports whether the visitor fills in a form or has selected text, which an update would undo.
function busy(main) {
  if (main.contains(document.activeElement) && document.activeElement.matches("input, select")) return true;
  for (const e of main.querySelectorAll("input:not([type=hidden])")) if (e.value !== e.defaultValue || e.checked !== e.defaultChecked) return true;
  for (const o of main.querySelectorAll("option")) if (o.selected !== o.defaultSelected && o.defaultSelected) return true;
  return String(getSelection()) !== "" && main.contains(getSelection().anchorNode);
}

function refocus(main, index, name) {
  const all = [...main.querySelectorAll(focusable)];
  const same = all[index] && nameOf(all[index]) === name ? all[index] : all.find((e) => nameOf(e) === name);
  (same ?? main).focus({ preventScroll: true });
}

function replace(text) {
  const next = new DOMParser().parseFromString(text, "text/html").getElementById("main");
  const main = document.getElementById("main");
  if (!next || next.isEqualNode(main) || busy(main)) return;
  const active = document.activeElement;
  const within = active !== main && main.contains(active);
  const index = within ? [...main.querySelectorAll(focusable)].indexOf(active) : -1;
  const name = within ? nameOf(active) : "";
  const keep = (selector, get) => [...main.querySelectorAll(selector)].map(get);
  const folds = keep("details", (e) => e.open);
  const scrolls = keep(".wrap", (e) => e.scrollLeft);
  const [x, y] = [scrollX, scrollY];
  document.adoptNode(next);
  next.querySelectorAll("details").forEach((e, i) => { e.open = folds[i] ?? false; });
  main.replaceWith(next);
  next.querySelectorAll(".wrap").forEach((e, i) => { e.scrollLeft = scrolls[i] ?? 0; });
  scrollTo(x, y);
  if (within) refocus(next, index, name);
  else if (active === main) next.focus({ preventScroll: true });
  document.body.dataset.shown = String(1 + Number(document.body.dataset.shown ?? 0));
}

function say(text) {
  if (lost.textContent !== text) lost.textContent = text;
  lost.hidden = text === "";
}

async function look() {
  if (document.hidden || paused || ended) return;
  try {
    const headers = { "OneClaw-Live": "1" };
    if (tag) headers["If-None-Match"] = tag;
    const answer = await fetch(location.href, { headers, cache: "no-store", credentials: "same-origin", redirect: "manual" });
    if (answer.type === "opaqueredirect" || answer.status === 401 || answer.status === 403) {
      ended = true;
      say("You are signed out. Send /admin to the bot for a new link, and reload this page.");
      return;
    }
    tag = answer.headers.get("ETag") ?? "";
    if (answer.ok) replace(await answer.text());
    say(answer.ok || answer.status === 304 ? "" : "This page could not be brought up to date. It is tried again.");
  } catch {
    say("The bot does not answer. This page shows what it was told last.");
  }
}

async function run() {
  for (;;) {
    await new Promise((done) => { setTimeout(done, every); });
    await look();
  }
}

pause.hidden = false;
pause.addEventListener("click", () => {
  paused = !paused;
  pause.textContent = paused ? "Resume updates" : "Pause updates";
  if (!paused) look();
});
document.addEventListener("visibilitychange", () => { look(); });
document.body.dataset.ready = "yes";
run();
