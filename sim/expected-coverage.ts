import type { Coverage } from "./coverage.ts";
import { faultNames } from "./faults.ts";

/** Ways through the phases that a thousand seeds must have gone, all of them. */
const transitions = [
  "none -> reserved",
  "none -> stop_due",
  "none -> debt",
  "reserved -> creating",
  "reserved -> stop_due",
  "creating -> starting",
  "creating -> stop_due",
  "starting -> live",
  "starting -> stop_due",
  "live -> stop_due",
  "live -> pausing",
  "live -> paused",
  "pausing -> paused",
  "pausing -> stop_due",
  "paused -> resuming",
  "paused -> stop_due",
  "resuming -> live",
  "stop_due -> stopping",
  "stopping -> stop_due",
  "stopping -> quarantined",
  "stopping -> gone",
  "quarantined -> stopping",
  "live -> debt",
  "stop_due -> debt",
  "debt -> gone",
  "gone -> stop_due",
];

/**
 * Other things that make a run worth running. Work that arrives between a keeper's promise to rest and the stop is so
 * rare that a thousand seeds meet it by luck alone: it has tests of its own (server, lifecycle-routes.test.ts).
 */
const marks = [
  "work is done",
  "client: work",
  "client: turn",
  "client: claim",
  "client: pause",
  "client: resume",
  "client: copy",
  "client: fork",
  "a copy is ready",
  "a copy is failed",
  "client: createAnother",
  "a spare is given away",
  "client: remove",
  "client: forceRemove",
  "client: giveUp",
  "client: leaveATurn",
  "client: lost its server",
  "client: capacity_exhausted",
  "an instance ends: without a server",
  "an instance ends: not admitted",
  "an instance ends: max lifetime",
  "an instance ends: host reboot",
];

/** What should have been seen and was not: then the runs have become tame. */
export function missingCoverage(coverage: Coverage): string[] {
  const seen = coverage.counts();
  const wanted = [
    ...faultNames.map((name) => `fault ${name}`),
    ...transitions.map((name) => `transition ${name}`),
    ...marks,
  ];
  return wanted.filter((name) => seen[name] === undefined);
}
