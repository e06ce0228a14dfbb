/** In the order of the table. */
import type { Case } from "../bench.ts";
import { create } from "./create.ts";
import { density } from "./density.ts";
import { exec } from "./exec.ts";
import { files } from "./files.ts";
import { forks } from "./forks.ts";
import { growth } from "./growth.ts";
import { lifecycle } from "./lifecycle.ts";
import { ports } from "./ports.ts";
import { reconnect } from "./reconnect.ts";
import { run } from "./run.ts";
import { session } from "./session.ts";
import { streaming } from "./streaming.ts";
import { terminal } from "./terminal.ts";

export const cases: readonly Case[] = [
  ...[create, exec, session, streaming, terminal, files, ports, run, reconnect, density, growth],
  ...[forks, lifecycle],
];
