const JSON_TOKEN = /[ \t\n\r]*(?:("[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)|(true|false|null)|([{}[\]:,]))/y;
const DEEPEST = 200;

/** What is wrong with a JSON text, and where. */
class JsonProblem extends Error {
  constructor(text, at, why) {
    const before = text.slice(0, at), line = before.split("\n").length, column = at - before.lastIndexOf("\n");
    super(line === 1 && !text.includes("\n") ? `character ${column}: ${why}` : `line ${line}, character ${column}: ${why}`);
  }
}

/** Reads JSON into nodes, in which numbers keep their digits: `kind`, `raw`, and `items` or `members`. */
function readJson(text) {
  let at = 0, token;
  const next = () => {
    JSON_TOKEN.lastIndex = at;
    const found = JSON_TOKEN.exec(text);
    const blank = /[ \t\n\r]*/y;
    blank.lastIndex = at;
    const start = at + blank.exec(text)[0].length;
    if (!found) {
      if (start >= text.length) { token = { kind: "end", start }; return; }
      const quote = text[start] === '"' ? "this text has no end quote, or a line break in it" : text[start] === "'" ? 'texts stand in double quotes (")' : `\`${text.slice(start, start + 12).split(/\s/)[0]}\` is not JSON; texts stand in double quotes`;
      throw new JsonProblem(text, start, quote);
    }
    at = JSON_TOKEN.lastIndex;
    const [, string, number, literal, mark] = found;
    token = { kind: string ? "string" : number ? "number" : literal ? "literal" : mark, raw: string || number || literal || mark, start };
  };
  const fail = why => { throw new JsonProblem(text, token.start, token.kind === "end" ? `the text ends; ${why}` : why); };
  const value = depth => {
    if (depth > DEEPEST) fail("it is nested too deeply");
    const { kind, raw } = token;
    if (kind === "{" || kind === "[") return kind === "{" ? object(depth) : array(depth);
    if (kind !== "string" && kind !== "number" && kind !== "literal") fail("a value is expected");
    next();
    return { kind, raw };
  };
  const object = depth => {
    const members = [];
    next();
    while (token.kind !== "}") {
      if (token.kind !== "string") fail("a name in double quotes is expected");
      const { raw } = token;
      next();
      if (token.kind !== ":") fail("a colon is expected");
      next();
      members.push([raw, value(depth + 1)]);
      if (token.kind === ",") { next(); if (token.kind === "}") fail("there is a comma too many"); } else if (token.kind !== "}") fail("a comma or } is expected");
    }
    next();
    return { kind: "object", members };
  };
  const array = depth => {
    const items = [];
    next();
    while (token.kind !== "]") {
      items.push(value(depth + 1));
      if (token.kind === ",") { next(); if (token.kind === "]") fail("there is a comma too many"); } else if (token.kind !== "]") fail("a comma or ] is expected");
    }
    next();
    return { kind: "array", items };
  };
  next();
  const read = value(0);
  if (token.kind !== "end") fail("there is more after the value");
  return read;
}

/** The value of a node, in which a number is written as it was read. */
function valueOf(node) {
  if (node.kind === "object") {
    // Without a prototype, so that any name is only a name.
    const found = Object.create(null);
    for (const [name, member] of node.members) found[JSON.parse(name)] = valueOf(member);
    return found;
  }
  if (node.kind === "array") return node.items.map(valueOf);
  return node.kind === "number" && JSON.rawJSON ? JSON.rawJSON(node.raw) : JSON.parse(node.raw);
}

/** Writes a node on lines; short lists of plain values stay on one. */
function writeJson(node, emit, indent = "") {
  const isPlain = ({ kind }) => kind !== "object" && kind !== "array";
  if (isPlain(node)) { emit(node.raw, node.kind); return; }
  const [open, close, parts] = node.kind === "object" ? ["{", "}", node.members] : ["[", "]", node.items];
  const isShort = node.kind === "array" && parts.every(isPlain) && parts.reduce((length, part) => length + part.raw.length + 2, 0) < 72;
  const inner = indent + "  ";
  emit(open);
  parts.forEach((part, index) => {
    if (isShort) { if (index) emit(" "); } else emit("\n" + inner);
    if (node.kind === "object") { emit(part[0], "key"); emit(": "); }
    writeJson(node.kind === "object" ? part[1] : part, emit, inner);
    if (index < parts.length - 1) emit(",");
  });
  if (parts.length && !isShort) emit("\n" + indent);
  emit(close);
}

/** JSON as lines of text; `null` if the text is not JSON. */
function prettyJson(text) {
  let out = "";
  try { writeJson(readJson(text), part => { out += part; }); } catch { return null; }
  return out;
}

/** JSON as coloured lines. */
function colouredJson(node) {
  const root = document.createDocumentFragment();
  let plain = "";
  writeJson(node, (part, kind) => {
    if (!kind) { plain += part; return; }
    root.append(plain, make("span", part, kind));
    plain = "";
  });
  root.append(plain);
  return root;
}
