// Reads every list of tools as the TypeScript SDK does, and tries the document's own examples on the input schemas.
// Usage: clients.mjs CACHE
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ListToolsResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';

const cache = process.argv[2];
const maps = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'];
const lists = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
const single = ['items', 'additionalProperties', 'unevaluatedProperties', 'unevaluatedItems', 'not', 'if', 'then', 'else',
  'contains', 'propertyNames', 'contentSchema'];

let passed = 0;
const failures = [];
const check = (words) => (words ? failures.push(words) : (passed += 1));

// Ajv says with a warning per schema that it does not know a format; hosts show it to nobody or in a log.
const unknownFormats = new Map();
console.warn = (text) => {
  const format = /unknown format "(.*?)" ignored/.exec(text)?.[1] ?? text;
  unknownFormats.set(format, (unknownFormats.get(format) ?? 0) + 1);
};

// The patterns of a schema that are no regular expressions with the flag `u`.
function badPatterns(schema, found = []) {
  if (schema === null || typeof schema !== 'object') return found;
  const patterns = [...(typeof schema.pattern === 'string' ? [schema.pattern] : []), ...Object.keys(schema.patternProperties ?? {})];
  for (const pattern of patterns) {
    try {
      new RegExp(pattern, 'u');
    } catch (error) {
      found.push(error.message);
    }
  }
  for (const key of maps) for (const inner of Object.values(schema[key] ?? {})) badPatterns(inner, found);
  for (const key of lists) for (const inner of schema[key] ?? []) badPatterns(inner, found);
  for (const key of single) badPatterns(schema[key], found);
  return found;
}

// Why none of the values fits the property, and whether the document itself has no such complaint; undefined where one
// fits. Compiled schemas are remembered by the schema object.
function miss(ajv, tool, { key, values, fits }) {
  if (key === null) return { why: 'the tool has no property for it', ours: true };
  const validate = ajv.compile(tool.inputSchema);
  let found;
  for (const value of values) {
    // The other arguments are absent, which only errors outside this property complain about.
    validate({ [key]: value });
    const errors = (validate.errors ?? []).filter(({ instancePath: path }) => path === `/${key}` || path.startsWith(`/${key}/`));
    if (errors.length === 0) return undefined;
    // A format alone accuses nobody: the Python validator that judged the document knows fewer.
    const ours = fits && errors.some(({ keyword }) => keyword !== 'format');
    found = { why: ajv.errorsText(errors, { dataVar: '', separator: '; ' }), ours };
  }
  return found;
}

const documents = readFileSync(join(cache, 'work/documents'), 'utf8').split('\n').filter(Boolean);
const casesFile = join(cache, 'work/cases.json');
const cases = existsSync(casesFile) ? JSON.parse(readFileSync(casesFile, 'utf8')) : {};
const examples = {};
const misses = [];

for (const name of documents) {
  let tools;
  try {
    tools = JSON.parse(readFileSync(join(cache, 'lists', `${name.replaceAll('/', '_')}.json`), 'utf8')).map((entry) => entry.tool);
  } catch (error) {
    check(`${name}: no list of tools: ${error.message}`);
    continue;
  }
  const parsed = ListToolsResultSchema.safeParse({ tools });
  check(parsed.success ? '' : `${name}: the SDK refuses the list: ${JSON.stringify(parsed.error.issues.slice(0, 3))}`);

  // One validator per document, because a client has one for all tools of a server: two schemas with one $id would show.
  const provider = new AjvJsonSchemaValidator();
  const compiled = new Set();
  for (const tool of tools) {
    for (const kind of ['inputSchema', 'outputSchema']) {
      const schema = tool[kind];
      if (schema === undefined) continue;
      const text = JSON.stringify(schema);
      if (compiled.has(text)) {
        passed += 2;
        continue;
      }
      const before = failures.length;
      const bad = badPatterns(schema);
      check(bad.length ? `${name}: ${tool.name} ${kind}: ${bad.slice(0, 3).join('; ')}` : '');
      try {
        provider.getValidator(schema);
        check('');
      } catch (error) {
        check(`${name}: ${tool.name} ${kind} does not compile: ${error.message}`);
      }
      if (failures.length === before) compiled.add(text);
    }
  }

  // The provider hides where an error stands; its own Ajv tells.
  const { _ajv: ajv } = provider;
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const counted = (examples[name] = { given: 0, fitting: 0 });
  for (const one of cases[name] ?? []) {
    counted.given += 1;
    let found;
    try {
      found = miss(ajv, byName.get(one.tool), one);
    } catch (error) {
      found = { why: `does not compile: ${error.message}`, ours: false }; // the failure above says so
    }
    check(found?.ours ? `${name}: ${one.tool}: an example of ${one.of} fits the document's schema but not the tool's: ${found.why}` : '');
    if (found === undefined) {
      counted.fitting += 1;
    } else {
      const whose = found.ours ? 'ours' : "the document's";
      misses.push([name, one.tool, one.of, whose, found.why.slice(0, 400), JSON.stringify(one.values.at(-1)).slice(0, 400)].join('\t'));
    }
  }
}

writeFileSync(join(cache, 'work/examples.json'), JSON.stringify(examples));
writeFileSync(join(cache, 'example-misses.txt'), misses.map((line) => `${line}\n`).join(''));
if (existsSync(casesFile)) {
  const all = Object.values(examples);
  const given = all.reduce((sum, { given }) => sum + given, 0);
  const fitting = all.reduce((sum, { fitting }) => sum + fitting, 0);
  console.log(`examples of the documents: ${fitting} of ${given} fit (${((100 * fitting) / Math.max(given, 1)).toFixed(2)} %)`);
}
const most = [...unknownFormats].sort((a, b) => b[1] - a[1]);
console.log(`formats that Ajv does not know: ${most.length}, most often ${most.slice(0, 8).map(([name, n]) => `${name} (${n})`).join(', ')}`);
for (const words of failures.slice(0, 50)) console.log(`FAILED ${words}`);
if (failures.length > 50) console.log(`and ${failures.length - 50} more`);
console.log(`${passed} passed, ${failures.length} failed`);
