import { PROTOCOL_VERSION } from "@holdfast/protocol";
import { type App, type AppDeps, newApp } from "../app.ts";
import { bearerAuth } from "../http/auth.ts";
import type { Inventory } from "../lifecycle/lifecycle.ts";
import type { Meters } from "../observe/meters.ts";

/** Counters are kept as things happen; what is there is counted by the database at each scrape. */
export function metricRoutes(deps: AppDeps & { readonly meters: Meters }): App {
  const { lifecycle, meters, notReady } = deps;
  const app = newApp();
  app.get("/metrics", bearerAuth(deps.token), async (c) => {
    if (notReady() === undefined) gauge(meters, await lifecycle.inventory());
    gaugeProcess(meters);
    return c.text(meters.print(), 200, { "Content-Type": "text/plain; version=0.0.4; charset=utf-8" });
  });
  return app;
}

function gauge(meters: Meters, { census, providers, dueLagMs }: Inventory): void {
  for (const one of [meters.sandboxes, meters.spares, meters.leases, meters.snapshots]) one.clear();
  for (const { provider, state, count } of census.sandboxes) meters.sandboxes.add(count, provider, state);
  for (const { provider, state, count } of census.spares) meters.spares.add(count, provider, state);
  for (const { provider, phase, count } of census.leases) meters.leases.add(count, provider, phase);
  for (const { provider, state, count } of census.snapshots) meters.snapshots.add(count, provider, state);
  meters.dueLag.set(dueLagMs / 1000);
  for (const { provider, isUp, slots, capacity } of providers) {
    const held = census.leases.filter((one) => one.provider === provider);
    meters.providerUp.set(isUp ? 1 : 0, provider);
    if (slots !== null) meters.slotsLimit.set(slots, provider);
    meters.memoryPromised.set(sum(held.map(({ memoryBytes }) => memoryBytes)), provider);
    meters.diskPromised.set(sum(held.map(({ diskBytes }) => diskBytes)), provider);
    if (capacity === undefined) continue;
    if (capacity.memoryBytes !== null) meters.memorySize.set(capacity.memoryBytes, provider);
    meters.diskSize.set(capacity.disk.sizeBytes, provider);
    meters.diskFree.set(capacity.disk.freeBytes, provider);
  }
}

function gaugeProcess({ info, cpu, memory, startTime }: Meters): void {
  info.set(1, PROTOCOL_VERSION);
  const { user, system } = process.cpuUsage();
  cpu.set((user + system) / 1e6);
  memory.set(process.memoryUsage.rss());
  startTime.set(performance.timeOrigin / 1000);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
