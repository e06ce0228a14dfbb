import { expect, test } from "bun:test";
import { ServerSentEvents } from "./server-sent-events.ts";

test("events come out whole, however their bytes are cut", () => {
  const text = `: keep-alive\n\nid: 1\ndata: {"a":"é"}\n\nevent: end\ndata: {}\n\n`;
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at <= bytes.length; at++) {
    const decoder = new ServerSentEvents();
    const seen = [...decoder.push(bytes.subarray(0, at)), ...decoder.push(bytes.subarray(at))];
    expect(seen).toEqual([
      { event: "message", data: '{"a":"é"}', id: "1" },
      { event: "end", data: "{}", id: "" },
    ]);
  }
});
