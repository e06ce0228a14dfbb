import { FitAddon } from "@xterm/addon-fit";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { WebglAddon } from "@xterm/addon-webgl";
import { type ITheme, Terminal as Screen } from "@xterm/xterm";
import type { Terminal } from "holdfast";
import { useEffect, useRef, useState } from "react";
import { useIsDark } from "../theme.ts";
import { ErrorNote } from "../ui/error-note.tsx";
import { Drawing } from "./drawing.ts";
import { held } from "./use-sandbox.ts";

type Line = "connecting" | "connected" | "reconnecting" | "ended";

/**
 * A live terminal. The program, and the screen's past, are in the sandbox: a connection that breaks goes on from the
 * next byte, and another viewer sees the same. Whoever has the focus says how large it is.
 */
export function TerminalView({ id, terminalId }: { id: string; terminalId: string }) {
  const place = useRef<HTMLDivElement>(null);
  const shown = useRef<Screen>(undefined);
  const [line, setLine] = useState<Line>("connecting");
  const [error, setError] = useState<unknown>();
  const isDark = useIsDark();

  useEffect(() => {
    if (place.current === null) return;
    const left = new AbortController();
    const screen = newScreen(place.current);
    shown.current = screen.terminal;
    const { signal } = left;
    attach({ id, terminalId, ...screen, signal, onLine: setLine }).catch((thrown: unknown) => {
      if (signal.aborted) return;
      setLine("ended");
      setError(thrown);
    });
    return () => {
      left.abort();
      screen.terminal.dispose();
    };
  }, [id, terminalId]);

  useEffect(() => {
    if (shown.current !== undefined) shown.current.options.theme = isDark ? dark : light;
  }, [isDark]);

  return (
    <div className="terminal">
      <div className="line-note" role="status" data-line={line}>
        {line === "connected" ? "" : words[line]}
      </div>
      <ErrorNote error={error} />
      <div ref={place} className="screen" />
    </div>
  );
}

const words: Record<Exclude<Line, "connected">, string> = {
  connecting: "connecting …",
  reconnecting: "reconnecting: the program goes on, and so will this",
  ended: "the program has ended",
};

interface View {
  readonly terminal: Screen;
  readonly fit: FitAddon;
  readonly place: HTMLElement;
}

function newScreen(place: HTMLElement): View {
  const terminal = new Screen({
    scrollback: 5_000,
    fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"),
    fontSize: 13,
    cursorBlink: false,
    screenReaderMode: false,
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.loadAddon(new WebLinksAddon());
  terminal.open(place);
  terminal.attachCustomKeyEventHandler((event) => {
    if (!isLeaving(event)) return true;
    terminal.blur();
    return false;
  });
  drawFast(terminal);
  fit.fit();
  return { terminal, fit, place };
}

/** Every other key is the program's, Tab too: without it, nobody would get out of a terminal by keyboard. */
function isLeaving({ ctrlKey, key }: KeyboardEvent): boolean {
  return ctrlKey && key === "F6";
}

/** Where there is no WebGL, or it gets lost, the terminal draws by itself: slower, and the same. */
function drawFast(terminal: Screen): void {
  try {
    const webgl = new WebglAddon();
    webgl.onContextLoss(() => webgl.dispose());
    terminal.loadAddon(webgl);
  } catch {}
}

async function attach(
  of: View & { id: string; terminalId: string; signal: AbortSignal; onLine: (line: Line) => void },
): Promise<void> {
  const { id, terminalId, terminal, signal, onLine } = of;
  const attached = held(id).then((sandbox) => sandbox.attachTerminal(terminalId, { signal }));
  takeTyping(terminal, attached);
  const link = await attached;
  signal.throwIfAborted();
  onLine("connected");
  link.onConnection((change) => onLine(change === "lost" ? "reconnecting" : "connected"));
  keepSize(of, link);
  terminal.focus();
  const drawing = new Drawing(terminal);
  for await (const event of link) await drawing.add(event.type === "output" ? event.bytes : event.restore);
  onLine("ended");
}

/** From the first key on: what is typed before the line stands waits for it. */
function takeTyping(terminal: Screen, attached: Promise<Terminal>): void {
  const encoder = new TextEncoder();
  // What is typed after the end is not an error to show: the screen says that it has ended.
  const type = (data: Uint8Array) => void attached.then((link) => link.write(data)).catch(() => undefined);
  terminal.onData((text) => type(encoder.encode(text)));
  terminal.onBinary((text) => type(Uint8Array.from(text, (one) => one.charCodeAt(0))));
}

/** The one who looks decides; the others follow. */
function keepSize({ terminal, fit, place, signal }: View & { signal: AbortSignal }, link: Terminal): void {
  const send = () => {
    if (!document.hasFocus()) return;
    fit.fit();
    const { cols, rows } = terminal;
    if (cols !== link.size.cols || rows !== link.size.rows) void link.resize(cols, rows);
  };
  link.onResize(({ cols, rows }) => terminal.resize(cols, rows));
  if (!document.hasFocus()) terminal.resize(link.size.cols, link.size.rows);
  const watching = new ResizeObserver(send);
  watching.observe(place);
  terminal.textarea?.addEventListener("focus", send, { signal });
  signal.addEventListener("abort", () => watching.disconnect());
  send();
}

const light: ITheme = {
  background: "#ffffff",
  foreground: "#1a1f29",
  cursor: "#1a1f29",
  selectionBackground: "#bcd0f7",
  black: "#1a1f29",
  red: "#b3261e",
  green: "#1d7a3d",
  yellow: "#8f5a00",
  blue: "#2456c8",
  magenta: "#8b3db8",
  cyan: "#0f6f7c",
  white: "#565f6f",
  brightBlack: "#747d8c",
  brightRed: "#c9372d",
  brightGreen: "#23894a",
  brightYellow: "#a06a0a",
  brightBlue: "#3a6be0",
  brightMagenta: "#9f50cc",
  brightCyan: "#1b8291",
  brightWhite: "#1a1f29",
};

const dark: ITheme = {
  background: "#14161a",
  foreground: "#e4e7ec",
  cursor: "#e4e7ec",
  selectionBackground: "#33496f",
};
