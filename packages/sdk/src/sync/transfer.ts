import { HoldfastError } from "@holdfast/protocol/errors";
import { type BatchFile, type BatchResult, MAX_BATCHED_BYTES } from "@holdfast/protocol/file-batch";
import type { LocalFile } from "./local.ts";
import type { LocalDirectory } from "./local-directory.ts";
import type { RemoteDirectory, RemoteFile, Upload } from "./remote.ts";
import { SIDE_BY_SIDE, sideBySide } from "./side-by-side.ts";
import type { Noted, SyncState } from "./state.ts";

/** One file that is to be made the same on both sides. */
export interface Job {
  readonly path: string;
  readonly local: LocalFile | undefined;
  readonly remote: RemoteFile | undefined;
}

type Outcome = { done: true } | { done: false; reason: string; isConflict: boolean };

export interface Transfer {
  readonly local: LocalDirectory;
  readonly remote: RemoteDirectory;
  readonly state: SyncState;
  /** Called for each job, after what came of it is in the state. */
  onOutcome(job: Job, outcome: Outcome): void;
}

// As much as one request carries: few enough that little is done twice after a failure, many enough to be fast.
const FILES_AT_ONCE = 500;
const BYTES_AT_ONCE = 4 * 1024 * 1024;

const DONE: Outcome = { done: true };
const changedMeanwhile = (where: string): Outcome => ({
  done: false,
  isConflict: true,
  reason: `it was changed ${where} during the sync`,
});

/** While one batch is carried out in the sandbox, the next is read. Only what is done is in the books. */
export async function upload(transfer: Transfer, jobs: readonly Job[]): Promise<void> {
  const batches = [...batchesOf(jobs, ({ local }) => local?.size ?? 0)];
  const prepare = (batch: Job[] = []) => {
    const prepared = sideBySide(batch, (job) => prepareUpload(transfer, job));
    prepared.catch(() => undefined); // it is thrown where it is waited for
    return prepared;
  };
  let next = prepare(batches[0]);
  try {
    for (const index of batches.keys()) {
      const batch = await next;
      next = prepare(batches[index + 1]);
      await uploadBatch(transfer, batch);
      await transfer.state.saveIfWorthIt();
    }
  } finally {
    await Promise.allSettled([next]);
  }
}

interface Prepared {
  readonly job: Job;
  /** `undefined` if the file was changed since it was looked at. */
  readonly upload: Upload | "large" | undefined;
}

async function prepareUpload({ local }: Transfer, job: Job): Promise<Prepared> {
  const isLarge = (job.local?.size ?? 0) > MAX_BATCHED_BYTES;
  return { job, upload: isLarge ? "large" : await local.uploadOf(job) };
}

async function uploadBatch(transfer: Transfer, batch: readonly Prepared[]): Promise<void> {
  const sent: { job: Job; upload: Upload }[] = [];
  for (const { job, upload } of batch)
    if (upload === "large") await uploadLarge(transfer, job);
    else if (upload === undefined) transfer.onOutcome(job, changedMeanwhile("here"));
    else sent.push({ job, upload });
  const results = sent.length === 0 ? [] : await transfer.remote.apply(sent.map(({ upload }) => upload));
  sent.forEach(({ job }, index) => {
    conclude(transfer, job, results[index]);
  });
}

export async function download(transfer: Transfer, jobs: readonly Job[]): Promise<void> {
  for (const batch of batchesOf(jobs, ({ remote }) => remote?.sizeBytes ?? 0)) {
    const isLarge = ({ remote }: Job) => (remote?.sizeBytes ?? 0) > MAX_BATCHED_BYTES;
    const isLink = ({ remote }: Job) => remote?.link !== undefined;
    const small = new Map(batch.filter((job) => !isLarge(job) && !isLink(job)).map((job) => [job.path, job]));
    for (const job of batch.filter(isLink)) await downloadLink(transfer, job);
    for (const job of batch.filter(isLarge)) await downloadLarge(transfer, job);
    await downloadSmall(transfer, small);
    await transfer.state.saveIfWorthIt();
  }
}

type Received = { file: BatchFile; bytes: Uint8Array; job: Job };

/** In memory are never more of them than are written side by side. */
async function downloadSmall(transfer: Transfer, jobs: Map<string, Job>): Promise<void> {
  let received: Received[] = [];
  const write = async () => {
    const outcomes = await sideBySide(received, (one) => writeReceived(transfer, one));
    outcomes.forEach((outcome, index) => {
      transfer.onOutcome((received[index] as Received).job, outcome);
    });
    received = [];
  };
  for await (const { file, bytes } of transfer.remote.read([...jobs.keys()], "content")) {
    const job = jobs.get(file.path);
    if (job === undefined) continue; // not asked for: what comes out of a sandbox may be anything
    jobs.delete(file.path);
    received.push({ file, bytes, job });
    if (received.length === SIDE_BY_SIDE) await write();
  }
  await write();
}

async function writeReceived(transfer: Transfer, { file, bytes, job }: Received): Promise<Outcome> {
  if ("error" in file) return failed(file.error.message);
  const content = { content: [bytes], mode: Number.parseInt(file.mode, 8) };
  return placed(transfer, job, { etag: file.etag, place: () => transfer.local.put(job, content) });
}

export async function deleteLocal(
  { local, state, onOutcome }: Transfer,
  jobs: readonly Job[],
): Promise<void> {
  for (const job of jobs) {
    const isDeleted = await local.remove(job);
    if (isDeleted) state.forget(job.path);
    onOutcome(job, isDeleted ? DONE : changedMeanwhile("here"));
  }
  await state.saveIfWorthIt();
}

async function uploadLarge(transfer: Transfer, job: Job): Promise<void> {
  const { local, remote, onOutcome } = transfer;
  const result = await remote.applyLarge(await local.largeUploadOf(job));
  if (!(await local.isAsSeen(job))) return onOutcome(job, changedMeanwhile("here"));
  conclude(transfer, job, result);
}

/** What became of it in the sandbox; done, it is in the books. */
function conclude({ state, onOutcome }: Transfer, job: Job, result: BatchResult | undefined): void {
  const outcome =
    result === undefined ? failed("the sandbox did not say what became of it") : outcomeOf(result);
  if (outcome.done && job.local !== undefined && result !== undefined && "etag" in result)
    state.note(job.path, { id: job.local.id, etag: result.etag ?? "", local: job.local.stamp });
  else if (outcome.done) state.forget(job.path);
  onOutcome(job, outcome);
}

async function downloadLarge(transfer: Transfer, job: Job): Promise<void> {
  const { stream, etag, mode } = await transfer.remote.open(job.path);
  const content = { content: stream as unknown as AsyncIterable<Uint8Array>, mode };
  const place = () => transfer.local.put(job, content);
  transfer.onOutcome(job, await placed(transfer, job, { etag, place }));
}

async function downloadLink(transfer: Transfer, job: Job): Promise<void> {
  const { link = "", etag = "" } = job.remote ?? {};
  const place = () => transfer.local.putLink(job, link);
  transfer.onOutcome(job, await placed(transfer, job, { etag, place }));
}

/** Of one file, and no reason to leave the others. */
const REFUSALS: readonly string[] = ["forbidden", "wrong_state"];

async function placed(
  { state }: Transfer,
  job: Job,
  { etag, place }: { etag: string; place: () => Promise<Omit<Noted, "etag"> | undefined> },
): Promise<Outcome> {
  try {
    const noted = await place();
    if (noted !== undefined) state.note(job.path, { ...noted, etag });
    return noted === undefined ? changedMeanwhile("here") : DONE;
  } catch (error) {
    if (!(error instanceof HoldfastError) || !REFUSALS.includes(error.code)) throw error;
    return failed(error.message);
  }
}

function outcomeOf(
  result: { path: string; error?: { code: string; message: string } } | { path: string },
): Outcome {
  if (!("error" in result) || result.error === undefined) return DONE;
  const isConflict = result.error.code === "precondition_failed";
  return isConflict ? changedMeanwhile("in the sandbox") : failed(result.error.message);
}

function failed(reason: string): Outcome {
  return { done: false, isConflict: false, reason };
}

function* batchesOf(jobs: readonly Job[], sizeOf: (job: Job) => number): Generator<Job[]> {
  let batch: Job[] = [];
  let bytes = 0;
  for (const job of jobs) {
    if (batch.length > 0 && (batch.length >= FILES_AT_ONCE || bytes + sizeOf(job) > BYTES_AT_ONCE)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(job);
    bytes += sizeOf(job);
  }
  if (batch.length > 0) yield batch;
}
