import type { AroundCall } from "@holdfast/keeper-link";
import { type Tracer, traceparentOf } from "./trace.ts";

/**
 * A span for each call of a keeper. The keeper itself has no way to a collector: it says how long it took, and its span
 * is made here.
 */
export function keeperSpans(tracer: Tracer): AroundCall {
  return ({ method, path }, send) => {
    // The first word alone: ids are too many to be names, and a query may have a path in it.
    const name = `${method} /${path.match(/^\/(\w+)/)?.[1] ?? ""}`;
    return tracer.within({ name: `keeper call ${name}`, kind: "client" }, async (span) => {
      if (span === undefined) return send({});
      const reply = await send({ traceparent: traceparentOf(span.context) });
      const ms = reply.headers.get("server-timing")?.match(/^keeper;dur=([\d.]{1,12})$/)?.[1];
      if (ms !== undefined) tracer.was({ name: `keeper ${name}`, kind: "server", ms: Number(ms) });
      return reply;
    });
  };
}
