import { HoldfastError, lazily } from "@holdfast/protocol";
import { z } from "zod";
import type { Call, Routes } from "../http/guard.ts";
import { about } from "./failures.ts";
import { type Target, targetIn } from "./paths.ts";
import { bodyOf, conditionsOf, Flag, Mode, where } from "./queries.ts";
import type { Uploads } from "./uploads.ts";

const UploadId = lazily(() =>
  z.string().regex(/^[\w-]{1,64}$/, "must be letters, digits, - and _, at most 64"),
);
const BeginQuery = lazily(() =>
  z.strictObject({ ...where(), uploadId: UploadId, mode: Mode.optional(), parents: Flag }),
);
const PartQuery = lazily(() => z.strictObject({ offset: z.coerce.number().int().min(0) }));
const CommitQuery = lazily(() => z.strictObject({ sha256: z.string().optional(), sync: Flag }));

/** Large files that come in parts. */
export function uploadRoutes({
  uploads,
  recovered,
}: {
  uploads: Uploads;
  recovered: Promise<unknown>;
}): Routes {
  return {
    "/v1/files/uploads": {
      POST: async (call) => {
        const { uploadId, mode, parents } = call.query(BeginQuery);
        const target = targetIn(call.request.url);
        await recovered;
        uploads.expire(Date.now());
        const upload = await about(target, () => uploads.begin({ uploadId, target, mode, parents }));
        return Response.json(upload, { status: 201 });
      },
    },
    "/v1/files/uploads/:id": {
      GET: (call) => Response.json(uploads.find(idOf(call))),
      PUT: (call) => {
        const { offset } = call.query(PartQuery);
        const part = { offset, body: bodyOf(call), check: call.checkClaim };
        const id = idOf(call);
        return about(named(id), async () => Response.json(await uploads.append(id, part)));
      },
      DELETE: (call) => {
        uploads.abort(idOf(call));
        return new Response(null, { status: 204 });
      },
    },
    "/v1/files/uploads/:id/commit": {
      POST: (call) => {
        const options = { ...call.query(CommitQuery), ...conditionsOf(call) };
        const id = idOf(call);
        return about(named(id), async () => Response.json(await uploads.commit(id, options)));
      },
    },
  };
}

function idOf(call: Call): string {
  const id = UploadId.safeParse(call.param("id"));
  if (id.success) return id.data;
  throw new HoldfastError("invalid_argument", "the upload's id must be letters, digits, - and _", {
    started: "no",
  });
}

/** For the words of an error. */
function named(uploadId: string): Target {
  return { path: Buffer.from(`the file of upload ${uploadId}`), root: undefined };
}
