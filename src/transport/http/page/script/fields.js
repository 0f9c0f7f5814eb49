const MOST_MEMBERS = 40, MOST_BOXES = 12;
let fields = [];

/** The members of an object that are fields of their own: one level below the arguments. */
function membersOf(schema) {
  const found = Object.entries(schema.properties || {});
  return found.length && found.length <= MOST_MEMBERS && !isChoice(schema) ? found : null;
}

/** Shows the arguments of a tool: the required ones first, the others folded. */
function showFields({ tool, examples }) {
  const root = tool.inputSchema || {}, given = examples || {};
  fields = [];
  const required = [], optional = [];
  for (const [name, schema] of Object.entries(root.properties || {})) {
    const meant = simplified(schema, root), isRequired = (root.required || []).includes(name), members = membersOf(meant);
    const about = { ...meant, description: schema.description || meant.description };
    const shown = members ? group(name, about, members, isRequired, root, given[name]) : field([name], about, isRequired, root, given[name]);
    (isRequired ? required : optional).push(shown);
  }
  const shown = [...required];
  if (optional.length) shown.push(folded(optional, "optional argument"));
  if (!shown.length) shown.push(make("p", "This tool takes no arguments.", "remark"));
  fill($("fields"), ...shown);
}

function folded(parts, word, isOpen) {
  const box = make("details", undefined, "optional");
  box.open = Boolean(isOpen);
  box.append(make("summary", counted(parts.length, word)), wrap("div", "", ...parts));
  return box;
}

function group(name, schema, members, isRequired, root, example) {
  const box = make("fieldset"), required = [], optional = [];
  box.append(heading(make("legend"), name, "object", isRequired));
  if (schema.description && schema.description !== "The request body") box.append(inline(make("p", undefined, "remark foreign"), withoutTags(schema.description).trim()));
  for (const [key, inner] of members) {
    const meant = simplified(inner, root), isNeeded = (schema.required || []).includes(key);
    const about = { ...meant, description: inner.description || meant.description };
    const value = example && typeof example === "object" ? example[key] : undefined;
    (isNeeded ? required : optional).push(field([name, key], about, isNeeded, root, value, isRequired));
  }
  box.append(...required);
  if (optional.length) box.append(folded(optional, "optional member", !required.length && isRequired));
  return box;
}

function heading(node, name, kind, isRequired) {
  node.append(make("span", name, "label-name foreign"));
  if (kind) node.append(", ", make("span", kind, "label-type"));
  if (isRequired) node.append(", ", make("span", "required", "label-required"));
  // The separators are for screen readers; the eye has the gaps.
  node.childNodes.forEach(child => { if (child.nodeType === Node.TEXT_NODE) child.replaceWith(make("span", child.data, "unseen")); });
  return node;
}

function field(place, schema, isRequired, root, example, isInRequired = true) {
  const id = "argument-" + fields.length, name = place.join("."), kind = kindOfField(place.at(-1), schema, root), box = make("div", undefined, "field");
  const entry = { place, name: place.at(-1), schema, root, kind, isRequired, isInRequired, box, error: make("p", undefined, "error") };
  const label = make(kind === "boxes" || settings.tools ? "p" : "label", undefined, "label");
  if (label.tagName === "LABEL") label.htmlFor = id;
  else label.id = id + "-label";
  box.append(heading(label, place.at(-1), kind === "file" ? "file" : typeInWords(schema, root), isRequired));
  const described = [];
  if (schema.description) {
    const remark = inline(make("p", undefined, "remark foreign"), withoutTags(schema.description).trim());
    remark.dir = "auto";
    remark.id = id + "-remark";
    described.push(remark.id);
    box.append(remark);
  }
  fields.push(entry);
  if (settings.tools) return box;
  entry.error.id = id + "-error";
  entry.error.hidden = true;
  described.push(entry.error.id);
  const input = entry.input = control(entry, id);
  input.id = id;
  input.setAttribute("aria-describedby", described.join(" "));
  if (kind !== "boxes") { input.required = isRequired; input.autocomplete = "off"; input.spellcheck = false; }
  box.append(input, entry.error);
  const sample = example !== undefined ? example : exampleOf(schema);
  const tools = wrap("div", "tools", ...(kind === "json" ? [tidier(entry)] : []));
  if (sample !== undefined && kind !== "file") tools.append(...prefill(entry, sample));
  if (tools.children.length) box.append(tools);
  input.addEventListener("input", () => changed(entry));
  input.addEventListener("change", () => changed(entry));
  return box;
}

/** A required argument is filled in. What is optional is a choice of the reader, for which there is a button. */
function prefill(entry, sample) {
  const { schema, isRequired, isInRequired, input } = entry, isDefault = schema.default !== undefined && JSON.stringify(schema.default) === JSON.stringify(sample);
  if (isRequired && isInRequired) { write(entry, sample); return []; }
  const shown = typeof sample === "string" ? sample : JSON.stringify(sample);
  if (isDefault) {
    if (input.tagName === "INPUT") input.placeholder = `${shown} if empty`;
    else if (input.tagName === "SELECT") input.options[0].textContent = `${shown} (default)`;
    return [];
  }
  const button = make("button", shown.length > 40 ? "Use the example" : `Use the example: ${shown}`, "link foreign");
  button.type = "button";
  button.append(make("span", ` for ${entry.name}`, "unseen"));
  button.addEventListener("click", () => { write(entry, sample); changed(entry); });
  return [button];
}

function kindOfField(name, schema, root) {
  const kinds = kindsOf(schema).filter(kind => kind !== "null"), items = resolved(schema.items, root);
  if (Array.isArray(schema.enum) && schema.enum.length < 300) return "enum";
  if ((kinds.includes("string") && (schema.properties || {}).data) || schema.contentEncoding === "base64" || schema.format === "binary") return "file";
  if (kinds[0] === "boolean") return "boolean";
  if (kinds[0] === "array" && Array.isArray(items.enum) && items.enum.length <= MOST_BOXES) return "boxes";
  if (kinds[0] === "string") return /^(body|content|text|message|description|comment|note|prompt)$/i.test(name) ? "lines" : "text";
  if (kinds[0] === "integer" || kinds[0] === "number") return "number";
  return "json";
}

function control({ kind, schema, root }, id) {
  if (kind === "enum" || kind === "boolean") {
    const select = make("select"), values = kind === "enum" ? schema.enum : [true, false];
    select.append(make("option", "–"));
    select.options[0].value = "";
    values.forEach((value, index) => { const option = make("option", String(value)); option.value = index; select.append(option); });
    return select;
  }
  if (kind === "boxes") {
    const box = make("div", undefined, "options");
    box.setAttribute("role", "group");
    box.setAttribute("aria-labelledby", id + "-label");
    for (const [index, value] of resolved(schema.items, root).enum.entries()) {
      const tick = make("input");
      tick.type = "checkbox";
      tick.value = index;
      box.append(wrap("label", "", tick, make("span", String(value), "foreign")));
    }
    return box;
  }
  if (kind === "json" || kind === "lines") {
    const area = make("textarea", undefined, kind === "json" ? "code" : "");
    area.rows = 3;
    area.placeholder = kind === "lines" ? "" : kindsOf(schema)[0] === "array" ? "[ ]" : kindsOf(schema)[0] === "object" ? "{ }" : "JSON";
    return area;
  }
  const input = make("input");
  input.type = kind === "file" ? "file" : schema.format === "password" ? "password" : "text";
  if (kind === "number") input.inputMode = "decimal";
  return input;
}

/** Puts a value into the control of a field. */
function write({ kind, schema, root, input }, value) {
  if (kind === "enum") input.value = String(schema.enum.findIndex(known => known === value));
  else if (kind === "boolean") input.value = value ? "0" : "1";
  else if (kind === "boxes") {
    const known = resolved(schema.items, root).enum;
    input.querySelectorAll("input").forEach((tick, index) => { tick.checked = Array.isArray(value) && value.includes(known[index]); });
  } else if (kind === "json") { input.value = JSON.stringify(value, null, 2); input.rows = Math.min(14, Math.max(3, input.value.split("\n").length)); }
  else input.value = typeof value === "string" ? value : JSON.stringify(value);
}

function tidier(entry) {
  const button = make("button", "Tidy up", "link");
  button.type = "button";
  button.addEventListener("click", () => {
    const tidy = prettyJson(entry.input.value);
    if (tidy === null) { judge(entry); return; }
    entry.input.value = tidy;
    entry.input.rows = Math.min(14, Math.max(3, tidy.split("\n").length));
    changed(entry);
  });
  return button;
}
