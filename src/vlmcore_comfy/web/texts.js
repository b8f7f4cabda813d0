// View Text: shows the text that the node before it is writing, and keeps it across reloads.
//
// ComfyUI sends the text so far as the event "progress_text" of the node that writes. What is shown
// is never HTML: a text area holds it. It is kept in the node's properties, which are part of the
// workflow that the page saves, and in none of its widget values, whose places are a file format.

import { api } from "../../scripts/api.js";
import { app } from "../../scripts/app.js";

const SHOWN = "vlmcore_shown_text";
const MOST_KEPT = 100000; // characters: a workflow is saved with each picture

function shownIn(node) {
  return node.widgets?.find((widget) => widget.name === SHOWN);
}

function show(node, text) {
  const widget = shownIn(node);
  if (!widget) return;
  const area = widget.element;
  const atEnd = area.scrollTop + area.clientHeight >= area.scrollHeight - 4;
  area.value = text;
  if (atEnd) area.scrollTop = area.scrollHeight;
  node.properties ??= {};
  node.properties[SHOWN] = text.slice(0, MOST_KEPT);
  app.graph?.setDirtyCanvas?.(true, false);
}

function addArea(node) {
  const area = document.createElement("textarea");
  area.readOnly = true;
  area.className = "comfy-multiline-input";
  area.setAttribute("aria-label", "Text");
  area.spellcheck = false;
  const widget = node.addDOMWidget(SHOWN, "vlmcore_text", area, { serialize: false });
  widget.serialize = false;
  widget.serializeValue = () => undefined;
}

function graphs() {
  const root = app.graph;
  return root ? [root, ...(root.subgraphs?.values?.() ?? [])] : [];
}

// The node whose output feeds the text, past what only passes it on.
function writerOf(graph, node) {
  const seen = new Set();
  let at = node;
  while (at && !seen.has(at.id)) {
    seen.add(at.id);
    const input = at.inputs?.find((each) => each.name === "text") ?? (at === node ? null : at.inputs?.[0]);
    const link = input?.link == null ? null : graph.links?.get?.(input.link) ?? graph.links?.[input.link];
    if (!link) return at === node ? null : at;
    at = graph.getNodeById(link.origin_id);
    if (at?.type !== "Reroute") return at;
  }
  return null;
}

api.addEventListener("progress_text", (event) => {
  const writer = String(event.detail?.nodeId ?? "").split(":").pop();
  const text = event.detail?.text;
  if (!writer || typeof text !== "string") return;
  for (const graph of graphs()) {
    for (const node of graph._nodes ?? graph.nodes ?? []) {
      if (node.type === "ViewText" && String(writerOf(graph, node)?.id) === writer) show(node, text);
    }
  }
});

app.registerExtension({
  name: "vlmcore.texts",
  nodeCreated(node) {
    if (node.comfyClass !== "ViewText") return;
    addArea(node);
    const executed = node.onExecuted;
    node.onExecuted = function (message) {
      executed?.apply(this, arguments);
      if (Array.isArray(message?.text)) show(this, message.text.join("\n\n"));
    };
    const configured = node.onConfigure;
    node.onConfigure = function () {
      configured?.apply(this, arguments);
      const kept = this.properties?.[SHOWN];
      if (typeof kept === "string") show(this, kept);
    };
  },
});
