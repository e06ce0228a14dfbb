import { afterEach, beforeEach, expect, test } from "bun:test";
import { Shift, TICKET_MS, TicketLost } from "./shift.ts";
import { TestWorld } from "./test-world.ts";

let world: TestWorld;
let sandboxId: string;
beforeEach(async () => {
  world = new TestWorld();
  await world.server.start();
  ({ sandboxId } = await world.running("one"));
});
afterEach(() => world.close());

async function begin(owner: string): Promise<Shift> {
  const { store, clock } = world;
  const askedAt = clock.now();
  const ticket = await store.ticket(sandboxId, { owner, ttlMs: TICKET_MS });
  if (ticket === undefined) throw new Error("another has it");
  return new Shift({ store, clock, ticket, askedAt });
}

const nothing = async () => "done";

test("scenario 50: nothing is begun, and nothing waited for, when the ticket is nearly over", async () => {
  const shift = await begin("me");
  await world.clock.pass(49_999);
  expect(await shift.act({ ms: 30_000 }, nothing)).toBe("done");
  const hanging = shift.act({ ms: 30_000 }, () => new Promise(() => {})).catch((error) => error);
  await world.clock.pass(1);
  expect(await hanging).toMatchObject({ code: "unavailable", started: "unknown" });
  expect(await shift.act({ ms: 1 }, nothing).catch((error) => error)).toBeInstanceOf(TicketLost);
  await shift.end();
});

test("a ticket is renewed when a call would not fit, also late, as long as nobody else took it", async () => {
  const shift = await begin("me");
  await shift.prepare(50_000);
  expect(shift.ticket.until).toBe(world.clock.wall() + TICKET_MS);
  await world.clock.pass(30_000);
  await shift.prepare(30_000);
  expect(shift.ticket.until).toBe(world.clock.wall() + TICKET_MS);
  await world.clock.pass(2 * TICKET_MS);
  await shift.prepare(30_000);
  expect(await shift.act({ ms: 30_000 }, nothing)).toBe("done");
  await shift.end();
});

test("scenario 4: whoever slept past its ticket changes nothing once another has the row (S10)", async () => {
  const asleep = await begin("asleep");
  const before = await world.store.ledger(sandboxId);
  await world.clock.pass(TICKET_MS);
  const awake = await begin("awake");
  expect(await asleep.prepare(1).catch((error) => error)).toBeInstanceOf(TicketLost);
  const late = before && (await world.store.save(before, { sandbox: { labels: { a: "b" } } }, asleep.ticket));
  expect(late).toBeUndefined();
  await asleep.end();
  // The end of the one does not end the other's.
  await awake.prepare(55_000);
  await awake.end();
});
