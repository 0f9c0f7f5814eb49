const SHOWN = 200000, COLOURED = 150000;
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** Shows a result: its parts as a person reads them, its notes, and the whole of it. */
function showResult(result, milliseconds) {
  const { notes, body } = noted(result), parts = result.content || [];
  const size = new Blob([JSON.stringify(parts)]).size, text = parts.map((part, index) => (part.type === "text" ? (index ? part.text : prettyJson(body) || body) : "")).filter(Boolean).join("\n\n");
  $("outcome").textContent = result.isError ? "Error" : "OK";
  $("outcome").className = "badge " + (result.isError ? "destructive" : "read");
  $("measures").textContent = `${milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds)} ms · ${inBytes(size)}`;
  fill($("answer-copy"), ...(text ? [copyButton("the result", () => text)] : []));
  const shown = parts.map((part, index) => block(index ? part : { ...part, text: body }));
  const whole = make("details");
  whole.append(make("summary", "The whole result, as the model gets it"));
  whole.addEventListener("toggle", () => { if (whole.children.length === 1) whole.append(long(JSON.stringify(result), "The whole result")); });
  fill($("result"), ...shown, ...notes.map(note), whole);
  $("answer").hidden = false;
}

const inBytes = size => (size < 1000 ? `${size} B` : size < 1e6 ? `${(size / 1e3).toFixed(1)} kB` : `${(size / 1e6).toFixed(1)} MB`);

function note(text) {
  const box = make("p", undefined, "note");
  box.append(make("b", "Note: "), make("span", text, "foreign"));
  return box;
}

/** The notes of a result, and its text without them: the last member of JSON. */
function noted(result) {
  const text = ((result.content || [])[0] || {}).text, content = result.structuredContent || {}, name = Object.keys(content).pop();
  const end = `"${name}":${JSON.stringify(content[name])}}`;
  if (!/^_notes_*$/.test(name) || !Array.isArray(content[name]) || !text || !text.endsWith(end)) return { notes: [], body: text };
  return { notes: content[name], body: text.slice(0, -end.length).replace(/,$/, "") + "}" };
}

/** A text in which JSON is pretty and coloured, cut until a reader asks for all of it. */
function long(text, label) {
  let node = null;
  if (/^\s*[[{]/.test(text)) { try { node = readJson(text); } catch { /* It is no JSON, and shown as it is. */ } }
  const isSmall = text.length <= COLOURED, pre = scrolling(undefined, label, node ? "json" : "");
  pre.dir = node ? "ltr" : "auto";
  if (node && isSmall) { pre.append(colouredJson(node)); return pre; }
  const shown = node ? prettyJson(text) : text;
  pre.textContent = shown.slice(0, SHOWN);
  if (shown.length <= SHOWN) return pre;
  const more = make("button", `Show all ${shown.length.toLocaleString("en")} characters`, "more"), box = wrap("div", "", pre, more);
  more.type = "button";
  more.addEventListener("click", () => { pre.textContent = shown; more.remove(); pre.focus(); });
  return box;
}

function block(part) {
  if (part.type === "text") return part.text ? long(part.text, "Text of the result") : make("p", "The result is empty.", "note");
  const resource = part.resource || {}, data = part.data || resource.blob, kind = part.mimeType || resource.mimeType || "application/octet-stream";
  if (resource.text !== undefined) return long(resource.text, "Text of the result");
  if (part.type === "resource_link") {
    const file = make("a", `Download ${part.name}, ${kind}, ${inBytes(part.size)}`);
    file.href = part.uri;
    return wrap("p", "file", file);
  }
  if (!data) return long(JSON.stringify(part), "Part of the result");
  const size = inBytes(Math.floor(data.length * 3 / 4));
  if (part.type === "image" && PICTURES.includes(kind)) {
    const image = make("img");
    image.alt = `Picture in the result, ${kind}, ${size}`;
    image.src = `data:${kind};base64,${data}`;
    return image;
  }
  const link = make("a", `Download ${kind}, ${size}`);
  link.download = "result";
  // Never opened as what the API calls it.
  link.href = URL.createObjectURL(new Blob([Uint8Array.from(atob(data), character => character.charCodeAt(0))], { type: "application/octet-stream" }));
  return wrap("p", "file", link);
}
