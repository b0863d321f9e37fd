// Of a page of an attribution: the word that is pointed at shows its card, or else the chosen one, which the address names.
{
  const all = (/** @type {string} */ selector) => /** @type {HTMLElement[]} */ ([...document.querySelectorAll(selector)]);
  const words = all(".words a"), cards = all("article"), rows = all(".tokens tbody tr");
  const usual = cards.findIndex((card) => card.matches(".shown"));
  let chosen = usual;
  const show = (/** @type {number} */ seen) => words.forEach((word, at) => {
    word.tabIndex = at === chosen ? 0 : -1;
    word.setAttribute("aria-current", String(at === seen));
    for (const node of [cards[at], rows[at]]) node.classList.toggle("shown", at === seen);
  });
  const read = () => {
    const named = cards.findIndex(({ id }) => `#${id}` === location.hash);
    chosen = named < 0 ? usual : named;
    show(chosen);
  };
  words.forEach((word, at) => {
    word.addEventListener("pointerenter", ({ pointerType }) => pointerType === "mouse" && show(at));
    word.addEventListener("pointerleave", () => show(chosen));
    for (const link of [word, ...rows[at].querySelectorAll("a")]) link.addEventListener("click", (event) => {
      event.preventDefault();  // in the frame of a notebook a link would leave the page
      try {
        history.replaceState(null, "", `#${cards[at].id}`);
      } catch { /* in a frame */ }
      chosen = at;
      show(at);
      if (link !== word) cards[at].scrollIntoView({ block: "nearest" });
    });
    word.addEventListener("keydown", (event) => {
      const next = words[at + ({ ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? NaN)];
      if (!next || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      next.focus();
      next.click();
    });
  });
  addEventListener("hashchange", read);
  read();
  document.getElementById("page")?.setAttribute("data-ready", "1");
}
