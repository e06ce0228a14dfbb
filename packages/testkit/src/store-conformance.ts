import { afterEach, beforeEach, describe } from "bun:test";
import { admissionSuite } from "./store-admission.ts";
import { auditSuite } from "./store-audit.ts";
import { censusSuite } from "./store-census.ts";
import type { StoreUnderTest } from "./store-fixtures.ts";
import { jobSuite } from "./store-jobs.ts";
import { leaseSuite } from "./store-leases.ts";
import { sandboxSuite } from "./store-sandboxes.ts";
import { snapshotSuite } from "./store-snapshots.ts";
import { spareSuite } from "./store-spares.ts";
import { ticketSuite } from "./store-tickets.ts";

/** What every store must keep, whatever database is under it. */
export function storeConformance(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`store: ${name}`, () => {
    let opened: StoreUnderTest;
    beforeEach(async () => {
      opened = await open();
    });
    afterEach(() => opened.dispose());

    const context = () => ({ ...opened, store: opened.stores[0] });
    sandboxSuite(context);
    leaseSuite(context);
    admissionSuite(context);
    spareSuite(context);
    ticketSuite(context);
    jobSuite(context);
    auditSuite(context);
    snapshotSuite(context);
    censusSuite(context);
  });
}
