const FILE_LIMIT = 2900000;

/** Reads a field: its value, or nothing if it is empty, or what is wrong with it. */
function readField({ kind, name, schema, root, input, isRequired }) {
  const missing = isRequired ? { wrong: `${name} is required` } : {};
  if (kind === "file") {
    const file = input.files[0];
    if (!file) return missing;
    return file.size > FILE_LIMIT ? { wrong: `${name} is larger than one request can carry` } : { file };
  }
  if (kind === "boxes") {
    const known = resolved(schema.items, root).enum, chosen = [...input.querySelectorAll(":checked")].map(tick => known[Number(tick.value)]);
    return chosen.length ? { value: chosen } : missing;
  }
  if (input.value === "" || (kind !== "text" && !input.value.trim())) return missing;
  if (kind === "enum") return { value: schema.enum[Number(input.value)] };
  if (kind === "boolean") return { value: input.value === "0" };
  const isText = kind === "text" || kind === "lines";
  let node;
  try { node = isText ? { kind: "string", raw: JSON.stringify(input.value) } : readJson(input.value.trim()); } catch (error) {
    const wanted = kindsOf(schema).filter(one => one !== "null").map(one => KIND_WORDS[one] || one).join(" or ");
    return { wrong: kind === "number" ? `${name} must be ${wanted}` : `${name} is not valid JSON, ${error.message}` };
  }
  const wrong = problem(name, node, schema, root);
  return wrong ? { wrong } : { value: valueOf(node) };
}

/** Shows what is wrong with a field, or that nothing is. */
function judge(entry) {
  const { wrong } = isLeftOut(entry) ? {} : readField(entry);
  entry.error.hidden = !wrong;
  entry.error.textContent = wrong ? wrong + "." : "";
  if (wrong) entry.input.setAttribute("aria-invalid", "true");
  else entry.input.removeAttribute("aria-invalid");
  return !wrong;
}

/** Returns true if a field is a member of an optional object of which no member is given. */
function isLeftOut(entry) {
  return !entry.isInRequired && !fields.some(other => other.place[0] === entry.place[0] && hasValue(other));
}
const hasValue = entry => { const read = readField(entry); return "value" in read || "file" in read || Boolean(read.wrong && !/ is required$/.test(read.wrong)); };

/** An error goes away as soon as it is mended. It comes only when a call is tried. */
function changed(entry) {
  if (!entry.error.hidden) judge(entry);
  fields.filter(other => !other.error.hidden && other !== entry).forEach(judge);
  showRequest();
}

/** Judges every field, and leads to the first one that is wrong. */
function areArgumentsGood() {
  const wrong = fields.filter(entry => !judge(entry));
  if (!wrong.length) return true;
  for (let box = wrong[0].box.parentElement; box && box.id !== "fields"; box = box.parentElement) if (box.tagName === "DETAILS") box.open = true;
  const first = wrong[0].kind === "boxes" ? wrong[0].input.querySelector("input") : wrong[0].input;
  first.focus();
  return false;
}

/** The arguments as the fields have them; what is wrong is left out. Files are read only if `withFiles`. */
async function readArguments(withFiles) {
  const found = Object.create(null), root = (chosen.tool || {}).inputSchema || {};
  for (const entry of fields) if (entry.place.length > 1 && entry.isInRequired && (root.required || []).includes(entry.place[0])) found[entry.place[0]] ||= Object.create(null);
  for (const entry of fields) {
    const { place } = entry, read = readField(entry);
    let value = read.value;
    if (read.file) value = withFiles ? await contentOf(read.file, entry) : { filename: read.file.name };
    if (value === undefined) continue;
    if (place.length === 1) found[place[0]] = value;
    else (found[place[0]] ||= Object.create(null))[place[1]] = value;
  }
  return found;
}

async function contentOf(file, { schema }) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return (schema.properties || {}).data ? { data: btoa(text), filename: file.name, mediaType: file.type || undefined } : btoa(text);
}
