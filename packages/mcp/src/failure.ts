import type { CallToolResult } from "@modelcontextprotocol/server";
import { HoldfastError } from "holdfast";
import { shortened } from "./clean-text.ts";

// Enough for numbers and names; what a foreign server answered must not fill a conversation.
const MAX_CHARACTERS = 1000;

/**
 * A failure as an agent sees it: what is wrong, and what to do next in terms of these tools. In words only: a client may
 * check structured content against the tool's own shape, which a failure does not have.
 */
export function failureResult(error: unknown): CallToolResult {
  return { isError: true, content: [{ type: "text", text: failureText(error) }] };
}

function failureText(error: unknown): string {
  if (!(error instanceof HoldfastError))
    return line("error", error instanceof Error ? error.message : String(error));
  const { code, message, started, retryable, details } = error;
  const lines = [
    line("error", message),
    `code: ${code}${retryable ? " (the same call can succeed later)" : ""}`,
    ...hintsFor(error).map((hint) => line("hint", hint)),
    started === "unknown" ? "It is not known whether it was begun: look before you do it again." : "",
    details === undefined ? "" : line("details", JSON.stringify(details)),
  ];
  return lines.filter((text) => text !== "").join("\n");
}

/** A file's name in it may be anything. */
function line(what: string, text: string): string {
  return `${what}: ${shortened(text, MAX_CHARACTERS)}`;
}

/** The server speaks of routes and commands; an agent has tools. */
function hintsFor(error: HoldfastError): string[] {
  const own = toolHint(error);
  if (own !== undefined) return [own];
  return error.hint === undefined ? [] : [error.hint];
}

function toolHint({ code, message, details }: HoldfastError): string | undefined {
  switch (code) {
    case "not_found":
      return /^there is no sandbox/.test(message)
        ? "sandbox_list shows which there are; sandbox_create makes one"
        : undefined;
    case "gone":
    case "deleting":
      return "sandbox_create makes another; sandbox_why says what became of this one";
    case "wrong_state":
      return isAtRest(details?.state)
        ? "only looking never starts it: any sandbox_exec does, on the same disk; processes from before it stopped are lost"
        : undefined;
    case "spec_conflict":
      return "leave out what differs to take the sandbox as it is, or choose another name";
    case "record_expired":
      return "it is too old to be remembered: look at what it left, and use a new id for new work";
    case "too_large":
      return "send less at once: write large files in parts with sandbox_exec, or put them there from outside with `holdfast cp`";
    default:
      return undefined;
  }
}

function isAtRest(state: unknown): boolean {
  return state === "stopped" || state === "paused";
}
