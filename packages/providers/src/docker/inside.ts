import type { InstanceRef, LaunchPlan } from "@holdfast/core";
import type { KeeperBoot } from "@holdfast/protocol";
import { baseEnvironment, inside } from "../local/inside.ts";
import type { Image, Info } from "./engine-types.ts";
import { imageEnvironment } from "./image.ts";
import type { DiskPart } from "./names.ts";
import type { Account } from "./user.ts";

/** Where the keeper finds its boot message: in its run directory, until it has read it. */
export const BOOT_FILE = "boot.json";

/** Where the parts of the disk are seen. */
export const placeOfPart: Readonly<Record<DiskPart, string>> = {
  workspace: inside.workspace,
  home: inside.home,
  state: inside.state,
};

/**
 * How the server reaches a keeper: `files`, by its socket in a directory that the daemon binds into the container; or
 * `api`, where the daemon does not see our files or a socket does not work through them, by the daemon alone.
 */
export type Reach = "files" | "api";

/**
 * The keeper's name where it is reached by the API: an abstract one. Its boot is on the disk then, and of what is there
 * the work could put something else in the place of a socket; of this, nothing while the keeper lives.
 */
export const KEEPER_NAME = "holdfast-keeper";

/** The keeper's program, from its own bundle: nothing of the image is needed for it. */
export const keeperProgram = [inside.loader, "--library-path", `${inside.bin}/lib`, `${inside.bin}/keeper`];

export function keeperCommand(name: string, reach: Reach): string[] {
  return [...keeperProgram, "--boot-file", `${bootDirOf(reach)}/${BOOT_FILE}`, name];
}

/** Into a volume the daemon unpacks whatever else it is told of the container's file system. */
export function bootDirOf(reach: Reach): string {
  return reach === "files" ? inside.run : inside.state;
}

export function bootMessage(
  ref: InstanceRef,
  plan: LaunchPlan,
  { image, info, account, reach }: { image: Image; info: Info; account: Account; reach: Reach },
): KeeperBoot {
  return {
    secret: plan.secret,
    sandboxId: ref.sandboxId,
    instanceId: ref.instanceId,
    generation: ref.generation,
    socketPath: reach === "files" ? inside.socket : `\0${KEEPER_NAME}`,
    stateDir: inside.state,
    env: { ...environmentOf(image, account), ...plan.spec.env },
    cwd: inside.workspace,
    // Docker mounts the container's own groups there; where it does not, nothing is counted.
    memoryCgroupDir: info.CgroupVersion === "2" ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory",
  };
}

/** The image's, but for who the user is: that is not the image's user. Its shell, if any, is found by the keeper. */
function environmentOf(image: Image, { name }: Account): Record<string, string> {
  const { HOME, LANG } = baseEnvironment;
  const { PATH = "", ...ofImage } = imageEnvironment(image);
  const path = PATH === "" ? baseEnvironment.PATH : `${inside.home}/.local/bin:${PATH}`;
  return definedOnly({ LANG, ...ofImage, PATH: path, HOME, USER: name, LOGNAME: name });
}

function definedOnly(values: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
