/** The tools of the server, which ranks and narrows its list itself. */
const served = {
  list: wanted => request("openapi-mcp/tools", wanted),
  detail: name => request("openapi-mcp/tool", { tool: name }),
};

/** The tools of a page that is a file. */
function filed(title, tools) {
  const text = tool => [tool.name, tool.title, tool.method, tool.path, ...tool.tags].join(" ").toLowerCase();
  const entries = tools.map(tool => ({ tool, names: text(tool), all: text(tool) + " " + String(tool.tool.description || "").toLowerCase() }));
  const counts = new Map();
  tools.forEach(tool => tool.tags.forEach(tag => counts.set(tag, (counts.get(tag) || 0) + 1)));
  const effects = Object.fromEntries(Object.keys(EFFECTS).map(effect => [effect, tools.filter(tool => tool.effect === effect).length]));
  return {
    async list({ query = "", effect, tag }) {
      const words = query.toLowerCase().split(/\s+/).filter(Boolean);
      const found = entries.filter(({ tool, all }) => words.every(word => all.includes(word)) && (!effect || tool.effect === effect) && (!tag || tool.tags.includes(tag)));
      const rank = ({ names }) => words.filter(word => names.includes(word)).length;
      if (words.length) found.sort((one, other) => rank(other) - rank(one));
      const groups = new Map();
      if (!words.length && !tag) found.forEach(({ tool }) => { const name = tool.tags[0] || "Other"; groups.set(name, (groups.get(name) || 0) + 1); });
      const order = [...groups.keys()];
      if (order.length) found.sort((one, other) => order.indexOf(one.tool.tags[0] || "Other") - order.indexOf(other.tool.tags[0] || "Other"));
      return { total: found.length, tools: found.map(({ tool }) => tool), groups: groups.size > 1 ? [...groups] : [], good: 0, server: { title, effects, tags: [...counts].sort((one, other) => other[1] - one[1]) } };
    },
    async detail(name) {
      const found = tools.find(tool => tool.name === name);
      if (!found) throw new Error("There is no such tool.");
      return found;
    },
  };
}

const source = settings.tools ? filed(settings.title, settings.tools) : served;
