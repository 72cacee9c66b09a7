// Copies the Markdown that the link before a button leads to. The button is hidden where the browser does not let pages write the clipboard.
for (const button of document.querySelectorAll("button[data-markdown]")) {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    const label = button.textContent;
    try {
      const answer = await fetch(button.previousElementSibling.href);
      if (!answer.ok) throw new Error(answer.statusText);
      await navigator.clipboard.writeText(await answer.text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied";
    }
    setTimeout(() => (button.textContent = label), 2000);
  });
}
