import { lazily, MAX_LIST_LIMIT } from "@holdfast/protocol";
import { z } from "zod";
import type { Call, Routes } from "../http/guard.ts";
import { about } from "./failures.ts";
import { listFiles } from "./list.ts";
import { makeDirectoryAt } from "./make-directory.ts";
import { moveFile } from "./move.ts";
import { type Target, targetIn } from "./paths.ts";
import type { Pending } from "./pending.ts";
import { bodyOf, conditionsOf, Flag, Mode, where } from "./queries.ts";
import { readFile } from "./read.ts";
import { deleteFile } from "./remove.ts";
import { makeStaging } from "./staging.ts";
import { statFile } from "./stat.ts";
import { unpack } from "./tar-in.ts";
import { openForTar } from "./tar-out.ts";
import { writeFile } from "./write.ts";

const PathQuery = lazily(() => z.strictObject(where()));
const WriteQuery = lazily(() =>
  z.strictObject({ ...where(), mode: Mode.optional(), sync: Flag, parents: Flag }),
);
const StatQuery = lazily(() =>
  z.strictObject({ ...where(), follow: Flag, hash: z.literal("sha256").optional() }),
);
const ListQuery = lazily(() =>
  z.strictObject({
    ...where(),
    depth: z.coerce.number().int().min(1).max(1000).default(1),
    limit: z.coerce.number().int().min(1).max(MAX_LIST_LIMIT).default(1000),
    cursor: z.string().optional(),
    hash: z.literal("sha256").optional(),
  }),
);
const MakeQuery = lazily(() => z.strictObject({ ...where(), mode: Mode.optional(), parents: Flag }));
// An archive of a few KB can unpack to any size: these bound what one call may fill the disk with.
const TarQuery = lazily(() =>
  z.strictObject({
    ...where(),
    parents: Flag,
    maxBytes: z.coerce
      .number()
      .int()
      .min(0)
      .default(64 * 1024 ** 3),
    maxEntries: z.coerce.number().int().min(0).default(1_000_000),
  }),
);
const MoveQuery = lazily(() =>
  z.strictObject({
    from: z.string(),
    to: z.string(),
    root: z.string().optional(),
    overwrite: Flag,
  }),
);
const DeleteQuery = lazily(() => z.strictObject({ ...where(), recursive: Flag }));

/** Files, as the work's user. Every one of these is use of the sandbox, also while its bytes are on their way. */
export function filesRoutes({
  pending,
  recovered,
}: {
  pending: Pending;
  recovered: Promise<unknown>;
}): Routes {
  const on = async <T>(target: Target, work: () => T | Promise<T>): Promise<T> => {
    await recovered;
    return about(target, work);
  };
  return {
    "/v1/files": {
      GET: (call) => {
        call.query(PathQuery);
        const target = targetIn(call.request.url);
        return on(target, () => answerFile(call, target));
      },
      PUT: (call) => {
        const query = call.query(WriteQuery);
        const target = targetIn(call.request.url);
        return on(target, async () => {
          const { created, file } = await writeFile({ ...sentWith(call), ...query, target }, pending);
          return Response.json(file, { status: created ? 201 : 200, headers: { ETag: `"${file.etag}"` } });
        });
      },
      DELETE: (call) => {
        const { recursive } = call.query(DeleteQuery);
        const target = targetIn(call.request.url);
        return on(target, async () => {
          await deleteFile(target, { recursive });
          return new Response(null, { status: 204 });
        });
      },
    },
    "/v1/files/tar": {
      GET: (call) => {
        call.query(PathQuery);
        const target = targetIn(call.request.url);
        return on(target, () => answerTar(call, target));
      },
      PUT: (call) => {
        const { parents, ...limits } = call.query(TarQuery);
        const target = targetIn(call.request.url);
        return on(target, async () => {
          await using staging = await makeStaging(target, { pending, parents });
          const { body, check } = sentWith(call);
          return Response.json(await unpack(body, staging, { limits, check }));
        });
      },
    },
    "/v1/files/stat": {
      GET: (call) => {
        const { follow, hash } = call.query(StatQuery);
        const target = targetIn(call.request.url);
        const options = { follow, hash: hash !== undefined };
        return on(target, async () => Response.json(await statFile(target, options)));
      },
    },
    "/v1/files/list": {
      GET: (call) => {
        const { depth, limit, cursor, hash } = call.query(ListQuery);
        const target = targetIn(call.request.url);
        const request = { target, depth, limit, cursor, hash: hash !== undefined };
        return on(target, async () => Response.json(await listFiles(request)));
      },
    },
    "/v1/files/mkdir": {
      POST: (call) => {
        const query = call.query(MakeQuery);
        const target = targetIn(call.request.url);
        return on(target, () => Response.json(makeDirectoryAt(target, query), { status: 201 }));
      },
    },
    "/v1/files/move": {
      POST: (call) => {
        const { overwrite } = call.query(MoveQuery);
        const [from, to] = [targetIn(call.request.url, "from"), targetIn(call.request.url, "to")];
        return on(from, () => about(to, () => Response.json(moveFile(from, to, { overwrite }))));
      },
    },
  };
}

function answerFile(call: Call, target: Target): Response {
  const { headers } = call.request;
  const { response, over } = readFile({
    target,
    range: headers.get("Range"),
    ifMatch: headers.get("If-Match"),
  });
  call.busyUntil(over);
  return response;
}

function answerTar(call: Call, target: Target): Response {
  const { pieces, close } = openForTar(target);
  const { promise: over, resolve: finish } = Promise.withResolvers<void>();
  const finished = async () => {
    await pieces.return(undefined);
    close();
    finish();
  };
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(to) {
        const next = await pieces.next().catch((error: unknown) => {
          to.error(error); // the connection breaks: nobody takes this for the whole
        });
        if (next?.done === false) return to.enqueue(next.value);
        if (next !== undefined) to.close();
        await finished();
      },
      cancel: finished,
    },
    { highWaterMark: 0 },
  );
  call.busyUntil(over);
  return new Response(body, {
    headers: { "Content-Type": "application/x-tar", "Cache-Control": "no-store" },
  });
}

function sentWith(call: Call) {
  return { ...conditionsOf(call), body: bodyOf(call), check: call.checkClaim };
}
