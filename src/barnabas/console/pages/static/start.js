// Loads the console. A file that does not arrive, as when the network changes, leaves no module:
// then the page loads again, a few times, and says so in the end.

const KEY = "loads";
const LOADS_MAX = 3;
const WAIT_MS = 500;

try {
  await import("./main.js");
  sessionStorage.removeItem(KEY);
} catch (error) {
  const loads = Number(sessionStorage.getItem(KEY)) + 1;
  if (loads < LOADS_MAX) {
    sessionStorage.setItem(KEY, String(loads));
    setTimeout(() => location.reload(), WAIT_MS);
  } else {
    sessionStorage.removeItem(KEY);
    const text = document.createElement("p");
    text.textContent = "The console's page could not be loaded.";
    const again = document.createElement("button");
    again.textContent = "Try again";
    again.addEventListener("click", () => location.reload());
    const card = document.createElement("div");
    card.className = "card bad";
    card.setAttribute("role", "alert");
    card.append(text, again);
    document.getElementById("main").replaceChildren(card);
    throw error;
  }
}
