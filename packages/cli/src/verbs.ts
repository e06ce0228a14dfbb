import type { Command } from "commander";

/** What a command file exports: it adds its arguments, options, examples and action to an empty command. */
interface CommandModule {
  define(command: Command): void;
}

interface Verb {
  summary: string;
  /** Absent: the launcher has started it as a program of its own, long before us. */
  load?: () => Promise<CommandModule>;
  /** For programs, not for people. */
  isHidden?: true;
}

// By what somebody wants, which is how help shows them. Loaded one at a time: an `ls` does not wait for the code of
// `exec` to be read.
export const verbs: Record<string, Record<string, Verb>> = {
  "To begin with": {
    serve: { summary: "start the server" },
    run: {
      summary: "run one command in a new sandbox, then delete it",
      load: () => import("./commands/run.ts"),
    },
    create: { summary: "make a sandbox", load: () => import("./commands/create.ts") },
    exec: { summary: "run a command in a sandbox", load: () => import("./commands/exec.ts") },
    sh: { summary: "open a terminal in a sandbox", load: () => import("./commands/sh.ts") },
    attach: { summary: "go back to a terminal that runs", load: () => import("./commands/attach.ts") },
  },
  Looking: {
    ls: { summary: "list sandboxes", load: () => import("./commands/ls.ts") },
    ps: { summary: "list the processes of a sandbox", load: () => import("./commands/ps.ts") },
    inspect: { summary: "show everything about a sandbox", load: () => import("./commands/inspect.ts") },
    logs: { summary: "print the output of a process or command", load: () => import("./commands/logs.ts") },
    events: {
      summary: "show what happened to a sandbox, and why",
      load: () => import("./commands/events.ts"),
    },
    why: {
      summary: "say why a sandbox lives, and when it will end",
      load: () => import("./commands/why.ts"),
    },
  },
  "Starting and ending": {
    start: { summary: "start stopped sandboxes", load: () => import("./commands/start.ts") },
    stop: { summary: "stop sandboxes and keep their disks", load: () => import("./commands/stop.ts") },
    pause: { summary: "freeze what runs in sandboxes", load: () => import("./commands/pause.ts") },
    resume: { summary: "let paused sandboxes run on", load: () => import("./commands/resume.ts") },
    kill: { summary: "end a process with everything it started", load: () => import("./commands/kill.ts") },
    rm: { summary: "delete sandboxes with their disks", load: () => import("./commands/rm.ts") },
  },
  "Files and ports": {
    cp: { summary: "copy files into a sandbox, or out of it", load: () => import("./commands/cp.ts") },
    sync: {
      summary: "make a directory here and one in a sandbox the same",
      load: () => import("./commands/sync.ts"),
    },
    watch: { summary: "show what happens to a sandbox's files", load: () => import("./commands/watch.ts") },
    git: { summary: "clone a repository, show its state", load: () => import("./commands/git.ts") },
    port: { summary: "give a port of a sandbox an address", load: () => import("./commands/port.ts") },
    snapshot: {
      summary: "copy a sandbox's files; list and remove such copies",
      load: () => import("./commands/snapshot.ts"),
    },
    fork: { summary: "make sandboxes with another's files", load: () => import("./commands/fork.ts") },
    export: { summary: "write a snapshot as one archive", load: () => import("./commands/export.ts") },
    import: { summary: "make a snapshot from an archive", load: () => import("./commands/import.ts") },
  },
  "How long it lives, and for whom": {
    update: {
      summary: "change how long sandboxes live, and what ends them",
      load: () => import("./commands/update.ts"),
    },
    touch: { summary: "use sandboxes, so that they stay", load: () => import("./commands/touch.ts") },
    turn: { summary: "begin or end a turn, which holds a sandbox", load: () => import("./commands/turn.ts") },
    claim: { summary: "have a sandbox for oneself alone", load: () => import("./commands/claim.ts") },
    release: {
      summary: "end one's turn and claim, and leave all else",
      load: () => import("./commands/release.ts"),
    },
  },
  "For agents": {
    mcp: { summary: "serve the tools for agents (MCP) on stdio", load: () => import("./commands/mcp.ts") },
    skill: {
      summary: "teach an agent on this machine to use Holdfast",
      load: () => import("./commands/skill.ts"),
    },
  },
  "For whoever runs the server": {
    doctor: { summary: "check what this machine needs to hold sandboxes" },
    providers: { summary: "show the backends and their room", load: () => import("./commands/providers.ts") },
    leases: {
      summary: "list every instance that exists or may exist",
      load: () => import("./commands/leases.ts"),
    },
    sweep: { summary: "look for what nobody wants, and end it", load: () => import("./commands/sweep.ts") },
    abandon: {
      summary: "forget an instance that cannot be proved gone",
      load: () => import("./commands/abandon.ts"),
    },
    dashboard: {
      summary: "print a link that signs a browser in",
      load: () => import("./commands/dashboard.ts"),
    },
    token: { summary: "change the server's token", load: () => import("./commands/token.ts") },
  },
  Help: {
    completion: {
      summary: "print what makes a shell complete our words",
      load: () => import("./commands/completion.ts"),
    },
    __complete: { summary: "for `completion`", isHidden: true, load: () => import("./commands/complete.ts") },
  },
};
