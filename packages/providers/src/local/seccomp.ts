import { HoldfastError } from "@holdfast/protocol";

/**
 * System calls refused with EPERM inside a sandbox, with their numbers on x86_64 and aarch64 (`undefined`: not there).
 * Most of them need rights that nobody inside has; refusing them as well keeps the kernel code behind them, where most
 * escapes were found, out of reach. Allowed on purpose: ptrace and process_vm_* (debuggers; only processes inside can
 * be seen), unshare and clone (user namespaces are switched off by bubblewrap itself).
 */
const refused: Record<string, readonly [x64: number | undefined, arm64: number | undefined]> = {
  // The kernel's key rings are not divided by namespaces: keys of the host's user would be seen.
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  // Programs inside the kernel, and its performance counters: leaks and a long list of holes.
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  syslog: [103, 116],
  lookup_dcookie: [212, 18],
  // Mounts, by the old interface and the new.
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  open_tree_attr: [467, 467],
  setns: [308, 268],
  // Opens files by number, past every mount.
  open_by_handle_at: [304, 265],
  // The machine itself.
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  reboot: [169, 142],
  swapon: [167, 224],
  swapoff: [168, 225],
  acct: [163, 89],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  nfsservctl: [180, 42],
  iopl: [172, undefined],
  ioperm: [173, undefined],
  vhangup: [153, 58],
  uselib: [134, undefined],
  // The clock belongs to everyone.
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  clock_adjtime: [305, 266],
  adjtimex: [159, 171],
};

const KILL_PROCESS = 0x8000_0000;
const ALLOW = 0x7fff_0000;
const EPERM = 0x0005_0001;

// Instructions of the kernel's classic BPF: load a word of the call's description, compare and jump, return.
const LOAD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_AT_LEAST = 0x35;
const RETURN = 0x06;
// Where the description has the number of the call and the kind of processor that it was made for.
const NUMBER_AT = 0;
const ARCH_AT = 4;
/** Calls with this bit are of the x32 interface: the same calls under other numbers. */
const X32_BIT = 0x4000_0000;

type Instruction = readonly [code: number, jumpTrue: number, jumpFalse: number, value: number];

const machines = {
  x64: { audit: 0xc000_003e, column: 0 },
  arm64: { audit: 0xc000_00b7, column: 1 },
} as const;

/** The filter in the form that `bwrap --seccomp` reads. */
export function seccompProgram(arch: string = process.arch): Uint8Array {
  if (arch !== "x64" && arch !== "arm64") {
    throw new HoldfastError(
      "unsupported",
      `no system call filter is written for processors of kind ${arch}`,
      {
        hint: "Run Holdfast on x86_64 or aarch64.",
      },
    );
  }
  const { audit, column } = machines[arch];
  const numbers = Object.values(refused).flatMap((pair) => pair[column] ?? []);
  return encode([
    [LOAD, 0, 0, ARCH_AT],
    // A program for another processor (32-bit x86) has other numbers: it would walk past the list.
    [JUMP_IF_EQUAL, 1, 0, audit],
    [RETURN, 0, 0, KILL_PROCESS],
    [LOAD, 0, 0, NUMBER_AT],
    ...(arch === "x64" ? x32Refused : []),
    ...numbers.map((number, i): Instruction => [JUMP_IF_EQUAL, numbers.length - i, 0, number]),
    [RETURN, 0, 0, ALLOW],
    [RETURN, 0, 0, EPERM],
  ]);
}

const x32Refused: readonly Instruction[] = [
  [JUMP_IF_AT_LEAST, 0, 1, X32_BIT],
  [RETURN, 0, 0, EPERM],
];

function encode(program: readonly Instruction[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(program.length * 8));
  for (const [i, [code, jumpTrue, jumpFalse, value]] of program.entries()) {
    view.setUint16(i * 8, code, true);
    view.setUint8(i * 8 + 2, jumpTrue);
    view.setUint8(i * 8 + 3, jumpFalse);
    view.setUint32(i * 8 + 4, value, true);
  }
  return new Uint8Array(view.buffer);
}
