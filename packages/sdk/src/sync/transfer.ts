import { HoldfastError } from "@holdfast/protocol/errors";
import { type BatchResult, MAX_BATCHED_BYTES } from "@holdfast/protocol/file-batch";
import type { LocalFile } from "./local.ts";
import type { LocalDirectory } from "./local-directory.ts";
import type { RemoteDirectory, RemoteFile, Upload } from "./remote.ts";
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

/** What is done is in the books before the next batch begins, and nothing else is. */
export async function upload(transfer: Transfer, jobs: readonly Job[]): Promise<void> {
  const { remote, local, state } = transfer;
  for (const batch of batchesOf(jobs, ({ local }) => local?.size ?? 0)) {
    const sent: { job: Job; upload: Upload }[] = [];
    for (const job of batch) {
      if ((job.local?.size ?? 0) > MAX_BATCHED_BYTES) await uploadLarge(transfer, job);
      else {
        const prepared = await local.uploadOf(job);
        if (prepared === undefined) transfer.onOutcome(job, changedMeanwhile("here"));
        else sent.push({ job, upload: prepared });
      }
    }
    const results = sent.length === 0 ? [] : await remote.apply(sent.map(({ upload }) => upload));
    sent.forEach(({ job }, index) => {
      conclude(transfer, job, results[index]);
    });
    await state.save();
  }
}

export async function download(transfer: Transfer, jobs: readonly Job[]): Promise<void> {
  const { remote, state } = transfer;
  for (const batch of batchesOf(jobs, ({ remote }) => remote?.sizeBytes ?? 0)) {
    const isLarge = ({ remote }: Job) => (remote?.sizeBytes ?? 0) > MAX_BATCHED_BYTES;
    const isLink = ({ remote }: Job) => remote?.link !== undefined;
    const small = new Map(batch.filter((job) => !isLarge(job) && !isLink(job)).map((job) => [job.path, job]));
    for (const job of batch.filter(isLink)) await downloadLink(transfer, job);
    for (const job of batch.filter(isLarge)) await downloadLarge(transfer, job);
    for await (const { file, bytes } of remote.read([...small.keys()], "content")) {
      const job = small.get(file.path);
      if (job === undefined) continue; // not asked for: what comes out of a sandbox may be anything
      if ("error" in file) {
        transfer.onOutcome(job, failed(file.error.message));
        continue;
      }
      const mode = Number.parseInt(file.mode, 8);
      await put(transfer, job, { content: [bytes], mode, etag: file.etag });
    }
    await state.save();
  }
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
  await state.save();
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
  await put(transfer, job, { content: stream as unknown as AsyncIterable<Uint8Array>, mode, etag });
}

async function downloadLink(transfer: Transfer, job: Job): Promise<void> {
  const { link = "", etag = "" } = job.remote ?? {};
  await placed(transfer, job, { etag, place: () => transfer.local.putLink(job, link) });
}

async function put(
  transfer: Transfer,
  job: Job,
  {
    etag,
    ...file
  }: { content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>; mode: number; etag: string },
): Promise<void> {
  await placed(transfer, job, { etag, place: () => transfer.local.put(job, file) });
}

/** Of one file, and no reason to leave the others. */
const REFUSALS: readonly string[] = ["forbidden", "wrong_state"];

async function placed(
  { state, onOutcome }: Transfer,
  job: Job,
  { etag, place }: { etag: string; place: () => Promise<Omit<Noted, "etag"> | undefined> },
): Promise<void> {
  try {
    const noted = await place();
    if (noted !== undefined) state.note(job.path, { ...noted, etag });
    onOutcome(job, noted === undefined ? changedMeanwhile("here") : DONE);
  } catch (error) {
    if (!(error instanceof HoldfastError) || !REFUSALS.includes(error.code)) throw error;
    onOutcome(job, failed(error.message));
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
