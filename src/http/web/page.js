"use strict";

(() => {
  const $ = (id) => document.getElementById(id);
  const text = $("text"), output = $("output"), backdrop = $("backdrop"), menu = $("menu");
  const source = $("source"), target = $("target"), key = $("key");
  const mostAlternatives = 3;
  const delay = 350; // milliseconds without a key until a text is translated
  let languages = [];
  let segments = []; // of the translation shown
  let shownText = ""; // that they translate
  let request = null;
  let timer = 0;
  let address = null; // of the file to download
  let limit = -1;
  let textsLimit = 100;
  let alternatives = 0; // of a sentence

  const say = (message, isError = false) => {
    $("status").textContent = message;
    $("status").classList.toggle("error", isError);
  };
  const stored = (name, value) => {
    try {
      if (value !== undefined) localStorage.setItem(name, value);
      return localStorage.getItem(name);
    } catch {
      return null; // the browser keeps nothing
    }
  };

  async function call(path, fields, signal) {
    const options = fields && {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(key.value ? { ...fields, api_key: key.value } : fields),
      signal,
    };
    const failed = (message) => () => {
      throw new Error(message);
    };
    const answer = await fetch(path, options || {}).catch(failed("The server does not answer."));
    const body = await answer.json().catch(
        failed(`The answer of the server is not complete (status ${answer.status}).`));
    if (!answer.ok) {
      const again = answer.headers.get("Retry-After");
      throw new Error(body.error + (again ? ` (try again in ${again} s)` : ""));
    }
    return body;
  }

  // Languages.
  function fill(select, codes, chosen) {
    select.replaceChildren();
    for (const [code, name] of codes) select.append(new Option(name, code, false, code === chosen));
    if (!codes.some(([code]) => code === chosen) && codes.length > 0) select.selectedIndex = 0;
  }
  const nameOf = (code) => languages.find((each) => each.code === code)?.name ?? code;
  function fillTargets(wanted) {
    const from = languages.find((each) => each.code === source.value);
    const codes = from ? from.targets.filter((code) => code !== from.code)
                       : languages.map((each) => each.code);
    fill(target, codes.map((code) => [code, nameOf(code)]), wanted);
    $("swap").disabled = !canSwap();
  }
  function canSwap() {
    if (source.value === "auto") return false;
    const from = languages.find((each) => each.code === target.value);
    return (from?.targets ?? []).includes(source.value);
  }
  function remember() {
    stored("source", source.value);
    stored("target", target.value);
    output.lang = target.value;
    text.lang = source.value === "auto" ? "" : source.value;
  }

  // Text.
  function changed() {
    $("count").textContent =
        `${[...text.value].length}${limit > 0 ? ` of ${limit}` : ""} characters`;
    text.style.height = ""; // the height of the pane
    if (text.scrollHeight > text.clientHeight) text.style.height = `${text.scrollHeight}px`;
    show([]);
    closeMenu();
    output.classList.add("stale");
    clearTimeout(timer);
    timer = setTimeout(translate, delay);
  }

  // The menu is that of words which are replaced.
  function render() {
    closeMenu();
    Output.render(output, segments);
  }

  async function translate() {
    clearTimeout(timer);
    request?.abort();
    request = null;
    output.removeAttribute("aria-busy");
    $("detected").textContent = "";
    $("download").hidden = true;
    if (text.value.trim() === "") {
      segments = [];
      shownText = "";
      render();
      output.classList.remove("stale");
      return say("");
    }
    const own = (request = new AbortController());
    const asked = text.value;
    output.setAttribute("aria-busy", "true");
    try {
      const answer = await call(
          "translate", {
            q: asked,
            source: source.value,
            target: target.value,
            format: "text",
            alternatives,
            segments: true
          },
          own.signal);
      if (own !== request) return;
      segments = answer.segments;
      shownText = asked;
      render();
      if (answer.detectedLanguage)
        $("detected").textContent = `Detected: ${nameOf(answer.detectedLanguage.language)}`;
      say("");
    } catch (error) {
      if (own !== request) return; // aborted
      say(error.message, true);
    }
    output.removeAttribute("aria-busy");
    output.classList.remove("stale");
  }

  // Links between words.
  function show(ranges) {
    backdrop.replaceChildren();
    let at = 0;
    for (const [begin, end] of [...ranges].sort((a, b) => a[0] - b[0])) {
      if (begin < at) continue;
      const mark = document.createElement("mark");
      mark.textContent = text.value.slice(begin, end);
      backdrop.append(text.value.slice(at, begin), mark);
      at = end;
    }
    if (at > 0) backdrop.append(text.value.slice(at));
  }
  function link(word) {
    for (const each of output.querySelectorAll(".linked")) each.classList.remove("linked");
    show([]);
    if (!word || shownText !== text.value) return;
    word.classList.add("linked");
    show(Output.linkedSource(segments, Number(word.dataset.segment), Number(word.dataset.word)));
  }
  function linkCaret() {
    if (document.activeElement !== text || shownText !== text.value) return;
    link(null);
    for (const [segment, word] of Output.linkedTarget(segments, text.selectionStart))
      output.querySelector(`.word[data-segment="${segment}"][data-word="${word}"]`)
          ?.classList.add("linked");
  }

  // Alternatives.
  let opener = null;
  function closeMenu(focus = false) {
    if (menu.hidden) return;
    menu.hidden = true;
    if (focus) opener?.focus();
  }
  function choose(segment, chosen, word) {
    segments[segment].chosen = chosen;
    render();
    const again =
        output.querySelector(`.word[data-segment="${segment}"][data-word="${word ?? 0}"]`) ??
        output.querySelector(`.word[data-segment="${segment}"]`);
    if (again) focusWord(again);
    say("The translation has been replaced.");
  }
  function section(title, entries, segment, word) {
    if (entries.length === 0) return;
    const head = document.createElement("div");
    head.className = "title";
    head.textContent = title;
    menu.append(head);
    for (const entry of entries) {
      const item = document.createElement("button");
      item.type = "button";
      item.setAttribute("role", "menuitem");
      item.tabIndex = -1;
      item.textContent = entry.text;
      item.addEventListener("click", () => choose(segment, entry.chosen, word));
      menu.append(item);
    }
  }
  function openMenu(element) {
    const index = Number(element.dataset.segment);
    const segment = segments[index];
    const word = element.dataset.word === undefined ? null : Number(element.dataset.word);
    menu.replaceChildren();
    if (word !== null) section("Word", Output.wordAlternatives(segment, word), index, word);
    const others = segment.translations.map((each, chosen) => ({ text: each.text, chosen }))
                       .filter((each) => each.chosen !== (segment.chosen ?? 0));
    section("Sentence", others, index, word);
    if (menu.childElementCount === 0) return say("There are no alternatives.");
    opener = word === null ? element.querySelector(".word") : element;
    menu.hidden = false;
    const box = element.getBoundingClientRect();
    const left = Math.min(box.left, document.documentElement.clientWidth - menu.offsetWidth - 12);
    menu.style.left = `${Math.max(12, left) + scrollX}px`;
    menu.style.top = `${box.bottom + scrollY + 4}px`;
    menu.querySelector("button").focus();
  }

  // Keys.
  function focusWord(word) {
    for (const each of output.querySelectorAll('.word[tabindex="0"]')) each.tabIndex = -1;
    word.tabIndex = 0;
    word.focus();
  }
  function move(list, from, event) {
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    const last = list.length - 1;
    const to = event.key === "Home" ? 0
        : event.key === "End" ? last
        : Math.max(0, Math.min(last, list.indexOf(from) + steps[event.key]));
    return list[to];
  }
  const moves = ["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp", "Home", "End"];

  output.addEventListener("keydown", (event) => {
    const word = event.target.closest(".word");
    if (!word) return;
    if (moves.includes(event.key)) {
      event.preventDefault();
      focusWord(move([...output.querySelectorAll(".word")], word, event));
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      openMenu(word);
    }
  });
  menu.addEventListener("keydown", (event) => {
    if (moves.includes(event.key)) {
      event.preventDefault();
      move([...menu.querySelectorAll("button")], event.target, event).focus();
    } else if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      closeMenu(true);
    }
  });
  output.addEventListener("click", (event) => {
    const chosen = event.target.closest(".word") ?? event.target.closest(".sentence");
    if (chosen) openMenu(chosen);
  });
  output.addEventListener("mouseover", (event) => link(event.target.closest(".word")));
  output.addEventListener("mouseleave", () => link(null));
  output.addEventListener("focusin", (event) => link(event.target.closest(".word")));
  document.addEventListener("pointerdown", (event) => {
    if (!menu.contains(event.target) && !output.contains(event.target)) closeMenu();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      translate();
    }
  });
  document.addEventListener("selectionchange", linkCaret);
  text.addEventListener("keyup", linkCaret);

  // Buttons.
  text.addEventListener("input", changed);
  source.addEventListener("change", () => {
    fillTargets(target.value);
    remember();
    changed();
  });
  target.addEventListener("change", () => {
    $("swap").disabled = !canSwap();
    remember();
    changed();
  });
  key.addEventListener("change", changed);
  $("swap").addEventListener("click", () => {
    const from = source.value;
    const translated = shownText === text.value ? Output.textOf(segments) : "";
    source.value = target.value;
    fillTargets(from);
    remember();
    if (translated) text.value = translated;
    changed();
  });
  $("clear").addEventListener("click", () => {
    text.value = "";
    changed();
    text.focus();
  });
  $("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(Output.textOf(segments));
      say("Copied.");
    } catch {
      say("The browser does not allow copying.", true);
    }
  });

  // Files.
  function decoded(name, bytes) {
    try {
      // The byte order mark stays a character, which Files keeps.
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
      throw new Error(`${name} is not valid UTF-8.`);
    }
  }
  async function translateFile(file) {
    say(`Reading ${file.name}`);
    $("download").hidden = true;
    const from = source.value;
    const to = target.value;
    try {
      const parts = Files.read(file.name, decoded(file.name, await file.arrayBuffer()));
      const texts = parts.pieces.filter((piece) => piece.translate).map((piece) => piece.text);
      const translations = await Files.translate(
          Files.batches(texts, textsLimit, limit > 0 ? Math.min(limit, 20000) : 20000),
          { source: from, target: to, format: parts.format }, call,
          (count) => say(`${file.name}: ${count} of ${texts.length} texts`));
      if (address) URL.revokeObjectURL(address);
      address = URL.createObjectURL(
          new Blob([parts.join(translations)], { type: "text/plain;charset=utf-8" }));
      const link = $("download");
      link.href = address;
      link.download = file.name.replace(/(\.[^.]*)?$/, `.${to}$1`);
      link.textContent = `Download ${link.download}`;
      link.hidden = false;
      link.focus();
      say(`${file.name} has been translated.`);
    } catch (error) {
      say(error.message, true);
    }
  }
  $("choose").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", () => {
    if ($("file").files.length > 0) translateFile($("file").files[0]);
    $("file").value = "";
  });

  async function start() {
    try {
      const [list, settings] = await Promise.all([call("languages"), call("frontend/settings")]);
      languages = list;
      limit = settings.charLimit;
      textsLimit = Math.min(textsLimit, settings.textsLimit);
      alternatives = Math.min(mostAlternatives, settings.alternativesLimit);
      $("key-row").hidden = !settings.keyRequired;
      const sources = list.filter((each) => each.targets.some((code) => code !== each.code));
      fill(
          source, [["auto", "Detect language"], ...sources.map((each) => [each.code, each.name])],
          stored("source") ?? settings.language.source.code);
      fillTargets(stored("target") ?? settings.language.target.code);
      remember();
      changed();
    } catch (error) {
      say(error.message, true);
    }
  }
  start();
})();
