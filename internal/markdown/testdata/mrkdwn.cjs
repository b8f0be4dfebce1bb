// Reads texts in Slack's mrkdwn with slack-message-parser. The input is [text]; printed is [[{text, formats}]].
const { parse, NodeType } = require("slack-message-parser");
const formats = { [NodeType.Bold]: "bold", [NodeType.Italic]: "italic", [NodeType.Strike]: "strike" };

function read(node, around, found) {
  switch (node.type) {
    case NodeType.Text:
      return found.push({ text: node.text, formats: around });
    case NodeType.Code:
    case NodeType.PreText:
      return found.push({ text: node.text, formats: [...around, "code"] });
    case NodeType.Emoji:
      return found.push({ text: node.source, formats: around });
    case NodeType.URL:
      return node.label.forEach((child) => read(child, [...around, `link ${node.url}`], found));
    case NodeType.Root:
    case NodeType.Bold:
    case NodeType.Italic:
    case NodeType.Strike:
      return node.children.forEach((child) => read(child, formats[node.type] ? [...around, formats[node.type]] : around, found));
  }
  found.push({ text: node.source, formats: [...around, NodeType[node.type]] });
}

const texts = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const all = texts.map((text) => {
  const found = [];
  read(parse(text), [], found);
  return found;
});
process.stdout.write(JSON.stringify(all));
