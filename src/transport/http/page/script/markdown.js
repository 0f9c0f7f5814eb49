const MARKED = /(`+)([^`]|[^`][^]*?[^`])\1(?!`)|\*\*(?=\S)([^]*?\S)\*\*|\*(?=[^\s*])([^*]*[^\s*])\*|(?<!\w)_(?=[^\s_])([^_]*[^\s_])_(?!\w)|!?\[([^\][]*)\]\(\s*([^\s()]*)[^()]*\)|<br\s*\/?>|\\([!-/:-@[-`{-~])/gi;

/**
 * Markdown as nodes: paragraphs, headings, lists, code, quotes, emphasis. A link is its text, with the address as a remark of the pointer,
 * because nothing of a document leads away from this page. Other HTML than that of [`withoutTags`] stays text.
 */
function markdown(text) {
  const root = document.createDocumentFragment(), lines = withoutTags(text.slice(0, 30000)).replace(/\r\n?/g, "\n").split("\n");
  let at = 0;
  const gather = (test, change) => { const found = []; while (at < lines.length && test(lines[at], found)) found.push(change(lines[at++])); return found.join("\n"); };
  while (at < lines.length) {
    const line = lines[at], fence = /^\s*(```+|~~~+)/.exec(line);
    if (!line.trim()) at++;
    else if (fence) {
      at++;
      const code = gather(inner => !inner.trim().startsWith(fence[1]), inner => inner);
      at++;
      const pre = make("pre");
      pre.append(make("code", code));
      root.append(pre);
    } else if (/^#{1,6}\s/.test(line)) {
      root.append(inline(make("h3"), line.replace(/^#+\s+|\s+#+\s*$/g, "")));
      at++;
    } else if (/^\s*>/.test(line)) root.append(inline(make("blockquote"), gather(inner => /^\s*>/.test(inner), inner => inner.replace(/^\s*>\s?/, ""))));
    else if (BULLET.test(line)) root.append(list());
    else if (/^\s*\|.*\|\s*$/.test(line)) {
      const pre = make("pre");
      pre.append(make("code", gather(inner => /^\s*\|/.test(inner), inner => inner.trim())));
      root.append(pre);
    } else root.append(inline(make("p"), gather((inner, found) => inner.trim() && !(found.length && (BULLET.test(inner) || /^\s*(```|#{1,6}\s)/.test(inner))), inner => inner.trim())));
  }
  return root;

  /** A list and the lists in it, which are indented more. */
  function list() {
    const indent = lines[at].search(/\S/), node = make(/^\s*\d/.test(lines[at]) ? "ol" : "ul");
    while (at < lines.length && BULLET.test(lines[at])) {
      const own = lines[at].search(/\S/);
      if (own < indent) break;
      if (own > indent + 1 && node.lastElementChild && own < 40) { node.lastElementChild.append(list()); continue; }
      const first = lines[at++].replace(BULLET, "");
      const rest = gather(inner => inner.trim() && !BULLET.test(inner) && /^\s+/.test(inner), inner => inner.trim());
      node.append(inline(make("li"), rest ? first + "\n" + rest : first));
      if (at + 1 < lines.length && !lines[at].trim() && BULLET.test(lines[at + 1])) at++;
    }
    return node;
  }
}
const TAG_MARKS = { code: "`", strong: "**", b: "**", em: "*", i: "*" };
const ENTITIES = { lt: "<", gt: ">", amp: "&", quot: '"', "#39": "'", nbsp: " " };

/** The HTML that documents use for text, as Markdown. A text with backticks is Markdown, and its tags are code. */
function withoutTags(text) {
  if (text.includes("`") || !/<[a-z]/i.test(text)) return text;
  return text
    .replace(/<a\s+href="([^"<>\s]*)"[^<>]*>([^<>]*)<\/a>/gi, "[$2]($1)")
    .replace(/<\/?(?:p|div|ul|ol)>/gi, "\n\n")
    .replace(/<li>\s*/gi, "\n- ")
    .replace(/<\/li>/gi, "")
    .replace(/<\/?(code|strong|b|em|i)>/gi, (_, name) => TAG_MARKS[name.toLowerCase()])
    .replace(/&(lt|gt|amp|quot|#39|nbsp);/g, (_, name) => ENTITIES[name]);
}

const BULLET = /^\s*(?:[-*+]|\d{1,9}[.)])\s+/;

function inline(node, text, depth = 0) {
  let last = 0;
  for (const found of text.slice(0, 6000).matchAll(MARKED)) {
    node.append(text.slice(last, found.index));
    last = found.index + found[0].length;
    const [whole, , code, strong, star, bar, linked, address, escaped] = found;
    if (code !== undefined) node.append(make("code", code.trim()));
    else if (strong !== undefined) node.append(depth < 4 ? inline(make("strong"), strong, depth + 1) : strong);
    else if (star !== undefined || bar !== undefined) node.append(depth < 4 ? inline(make("em"), star ?? bar, depth + 1) : whole);
    else if (linked !== undefined) {
      const link = depth < 4 ? inline(make("span", undefined, "link-text"), linked || address, depth + 1) : make("span", linked || address);
      link.title = address;
      node.append(link);
    } else if (escaped !== undefined) node.append(escaped);
    else node.append(make("br"));
  }
  node.append(text.slice(last));
  return node;
}
