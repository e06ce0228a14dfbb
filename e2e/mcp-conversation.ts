import { Client, type RequestOptions, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { holdfastBin, type TestServer } from "./harness.ts";

export interface Told {
  // biome-ignore lint/suspicious/noExplicitAny: tests say what they expect of it
  facts: any;
  text: string;
  isError: boolean;
}

export type Transport = "stdio" | "HTTP";
/** The protocol's present revision, and that of clients from before it. */
export type Revision = "2026-07-28" | "2025-11-25";

/** The official client, talking with `holdfast mcp` or with the server itself. All that was said is kept. */
export class Conversation {
  readonly client: Client;
  /** Everything that came back, as it came. */
  heard = "";

  private constructor(revision: Revision) {
    const mode = revision === "2025-11-25" ? "legacy" : "auto";
    this.client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  }

  static async open(server: TestServer, by: Transport, revision: Revision): Promise<Conversation> {
    const conversation = new Conversation(revision);
    await conversation.client.connect(by === "stdio" ? overStdio(server) : overHttp(server));
    return conversation;
  }

  async call(name: string, args: Record<string, unknown>, options?: RequestOptions): Promise<Told> {
    const result = await this.client.callTool({ name, arguments: args }, options);
    this.heard += JSON.stringify(result);
    const [first] = result.content as { text?: string }[];
    return { facts: result.structuredContent, text: first?.text ?? "", isError: result.isError === true };
  }

  /** The facts of a call that must not fail. */
  // biome-ignore lint/suspicious/noExplicitAny: tests say what they expect of it
  async facts(name: string, args: Record<string, unknown>): Promise<any> {
    const { facts, text, isError } = await this.call(name, args);
    if (isError) throw new Error(`${name} failed: ${text}`);
    return facts;
  }

  close(): Promise<void> {
    return this.client.close();
  }
}

function overStdio({ url, dataDir }: TestServer): StdioClientTransport {
  const env = { PATH: process.env.PATH ?? "", HOLDFAST_URL: url, HOLDFAST_DATA_DIR: dataDir };
  return new StdioClientTransport({ command: holdfastBin, args: ["mcp"], env });
}

function overHttp({ url, token }: TestServer): StreamableHTTPClientTransport {
  const headers = { Authorization: `Bearer ${token}` };
  return new StreamableHTTPClientTransport(new URL("/mcp", url), { requestInit: { headers } });
}
