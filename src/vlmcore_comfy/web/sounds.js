// PlayMusic: plays what the node made, at its volume; in the mode "on empty queue" only when no
// other graph waits.

import { api } from "../../scripts/api.js";
import { app } from "../../scripts/app.js";

let waiting = 0;
api.addEventListener("status", (event) => {
  waiting = event.detail?.exec_info?.queue_remaining ?? 0;
});

app.registerExtension({
  name: "vlmcore.sounds",
  nodeCreated(node) {
    if (node.comfyClass !== "PlayMusic") return;
    const executed = node.onExecuted;
    node.onExecuted = function (message) {
      executed?.apply(this, arguments);
      const file = message?.audio?.[0];
      if (!file?.filename) return;
      if (message.mode?.[0] === "on empty queue" && waiting > 1) return;
      const place = new URLSearchParams({
        filename: file.filename,
        subfolder: file.subfolder ?? "",
        type: file.type ?? "temp",
      });
      const sound = new Audio(api.apiURL(`/view?${place}`));
      sound.volume = Math.min(Math.max(Number(message.volume?.[0] ?? 0.5), 0), 1);
      sound.play().catch((error) => console.warn(`vlmcore: the page did not play: ${error.message}`));
    };
  },
});
