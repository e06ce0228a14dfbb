import { batchRoutes } from "../batch/routes.ts";
import type { Engine } from "../engine/engine.ts";
import type { Routes } from "../http/guard.ts";
import { filesRoutes } from "./files-routes.ts";
import { Pending } from "./pending.ts";
import { uploadRoutes } from "./upload-routes.ts";
import { Uploads } from "./uploads.ts";

/** All about files, one by one, in batches and in parts. What an earlier keeper left of them is removed first. */
export function allFilesRoutes(engine: Engine): Routes {
  const { stateDir } = engine.boot;
  const pending = new Pending(stateDir);
  const uploads = new Uploads(stateDir);
  const recovered: Promise<unknown> = pending
    .recover()
    .then(() => uploads.expire(engine.now))
    .catch((error: unknown) => process.stderr.write(`leftovers of files could not be removed: ${error}\n`));
  return {
    ...filesRoutes({ pending, recovered }),
    ...batchRoutes({ pending, recovered }),
    ...uploadRoutes({ uploads, recovered }),
  };
}
