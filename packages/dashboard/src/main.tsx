import "@xterm/xterm/css/xterm.css";
import "./styles/base.css";
import "./styles/controls.css";
import "./styles/pages.css";
import "./styles/sandbox.css";
import { QueryClientProvider } from "@tanstack/react-query";
import { createRoot } from "react-dom/client";
import { App } from "./app.tsx";
import { queries } from "./server.ts";
import { applyTheme } from "./theme.ts";

applyTheme();
const root = document.getElementById("root");
if (root === null) throw new Error("the page has no #root");
createRoot(root).render(
  <QueryClientProvider client={queries}>
    <App />
  </QueryClientProvider>,
);
