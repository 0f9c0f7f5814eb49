const KIND_WORDS = { string: "text", integer: "a whole number", number: "a number", boolean: "true or false", array: "a list", object: "an object", null: "null" };

/** The schema that a chain of references leads to. */
function resolved(schema, root) {
  let found = schema || {};
  for (let depth = 0; depth < 8 && found.$ref && found.$ref.startsWith("#/$defs/"); depth++) {
    found = (root.$defs || {})[found.$ref.slice(8).replaceAll("~1", "/").replaceAll("~0", "~")] || {};
  }
  return found;
}

/** A schema whose choice is one schema or null, as that schema. */
function simplified(schema, root) {
  const meant = resolved(schema, root), choices = meant.anyOf || meant.oneOf;
  if (!Array.isArray(choices) || meant.allOf) return meant;
  const others = choices.map(choice => resolved(choice, root)).filter(choice => choice.type !== "null");
  // `oneOf: [text, number]` is what `type: [text, number]` says.
  if (others.every(choice => typeof choice.type === "string" && !["object", "array"].includes(choice.type) && !choice.enum && choice.const === undefined)) {
    return { ...meant, anyOf: undefined, oneOf: undefined, type: [...new Set(others.map(choice => choice.type))].sort(type => (type === "string" ? -1 : 1)) };
  }
  return others.length === 1 && others.length < choices.length ? { ...meant, anyOf: undefined, oneOf: undefined, ...others[0], description: meant.description || others[0].description } : meant;
}

const kindsOf = schema => [].concat(schema.type || []);
const isChoice = schema => Boolean(schema.oneOf || schema.anyOf || schema.allOf || schema.not || schema.if);

function typeInWords(schema, root) {
  const kinds = kindsOf(schema).filter(kind => kind !== "null");
  if (kinds[0] === "array") {
    const item = kindsOf(resolved(schema.items, root)).filter(kind => kind !== "null").join(" or ");
    return item ? `list of ${item}s` : "list";
  }
  const format = /^(int32|int64|float|double)$/.test(schema.format) ? "" : schema.format;
  return [kinds.join(" or "), format].filter(Boolean).join(", ");
}

/** The example of a schema, its default, or its only value. */
function exampleOf(schema) {
  if (Array.isArray(schema.examples) && schema.examples.length) return schema.examples[0];
  if (schema.default !== undefined) return schema.default;
  return schema.const;
}

/**
 * What is wrong with a value that was read as JSON nodes, in a sentence, or nothing. It asks less than the server, which decides: what the
 * page does not understand is not wrong.
 */
function problem(name, node, schema, root, depth = 0) {
  const meant = simplified(schema, root);
  if (depth > 12 || node.raw === "null" || isChoice(meant)) return "";
  const wanted = kindsOf(meant);
  if (wanted.length && !wanted.some(kind => isOfKind(node, kind))) return `${name} must be ${wanted.map(kind => KIND_WORDS[kind] || kind).join(" or ")}`;
  if (node.kind === "number") {
    const value = Number(node.raw);
    if (meant.minimum !== undefined && value < meant.minimum) return `${name} must be ${meant.minimum} or more`;
    if (meant.maximum !== undefined && value > meant.maximum) return `${name} must be ${meant.maximum} or less`;
  }
  if (node.kind === "string") {
    const length = [...JSON.parse(node.raw)].length;
    if (meant.minLength > length) return length ? `${name} must have ${counted(meant.minLength, "character")} or more` : `${name} must not be empty`;
    if (meant.maxLength < length) return `${name} must have ${counted(meant.maxLength, "character")} or less; it has ${length}`;
  }
  if (Array.isArray(meant.enum) && node.raw !== undefined && !meant.enum.includes(JSON.parse(node.raw))) {
    return meant.enum.length > 12 ? `${name} has none of its values` : `${name} must be one of ${meant.enum.map(value => JSON.stringify(value)).join(", ")}`;
  }
  if (node.kind === "array") {
    if (meant.minItems > node.items.length) return `${name} must have ${counted(meant.minItems, "item")} or more`;
    if (meant.maxItems < node.items.length) return `${name} must have ${counted(meant.maxItems, "item")} or less`;
    for (const [index, item] of node.items.entries()) {
      const found = meant.items && problem(`${name}[${index}]`, item, meant.items, root, depth + 1);
      if (found) return found;
    }
  }
  if (node.kind === "object") {
    const given = new Map(node.members.map(([key, member]) => [JSON.parse(key), member]));
    const missing = (meant.required || []).find(key => !given.has(key));
    if (missing !== undefined) return `${name} needs ${missing}`;
    const known = meant.properties || {};
    for (const [key, member] of given) {
      if (!Object.hasOwn(known, key)) {
        if (meant.additionalProperties === false && !meant.patternProperties) return `${name} has no ${key}`;
        continue;
      }
      const found = problem(`${name}.${key}`, member, known[key], root, depth + 1);
      if (found) return found;
    }
  }
  return "";
}

function isOfKind(node, kind) {
  if (kind === "integer") return node.kind === "number" && /^-?\d+(\.0+)?$/.test(node.raw);
  if (kind === "boolean") return node.raw === "true" || node.raw === "false";
  if (kind === "null") return node.raw === "null";
  return node.kind === kind;
}
