import { Histogram, type Metric, Value } from "./metric.ts";

/** Every metric there is, by what it is for. The names are a contract: boards and alerts use them. */
export class Meters {
  // What is there, counted in the rows at each scrape.
  readonly sandboxes = gauge("holdfast_sandboxes", "Sandboxes by what they are doing.", "provider", "state");
  readonly spares = gauge(
    "holdfast_spares",
    "Instances that were launched ahead, and wait for somebody to create a sandbox like them. They are no sandboxes.",
    "provider",
    "state",
  );
  readonly leases = gauge(
    "holdfast_leases",
    "Instances that exist or may exist, by phase. One that is quarantined resists its end.",
    "provider",
    "phase",
  );
  readonly snapshots = gauge("holdfast_snapshots", "Snapshots by state.", "provider", "state");
  readonly providerUp = gauge(
    "holdfast_provider_up",
    "1 if the provider can be reached and takes new instances.",
    "provider",
  );
  readonly slotsLimit = gauge("holdfast_slots_limit", "How many instances the server allows.", "provider");
  readonly memoryPromised = gauge(
    "holdfast_memory_promised_bytes",
    "Memory that instances may take.",
    "provider",
  );
  readonly memorySize = gauge("holdfast_memory_size_bytes", "Memory of the provider's machine.", "provider");
  readonly diskPromised = gauge("holdfast_disk_promised_bytes", "Disk that instances may take.", "provider");
  readonly diskSize = gauge("holdfast_disk_size_bytes", "The file system that disks are on.", "provider");
  readonly diskFree = gauge("holdfast_disk_free_bytes", "What of it is free.", "provider");
  readonly dueLag = gauge(
    "holdfast_due_lag_seconds",
    "How late the server is with the work that is longest due; 0 if nothing is.",
  );

  // What happened to sandboxes, counted as it is written.
  readonly events = counter("holdfast_events_total", "Entries of all timelines.", "type");
  readonly sparesGiven = counter(
    "holdfast_spares_given_total",
    "Sandboxes that were created from a spare, without a launch.",
    "provider",
  );
  readonly launches = counter(
    "holdfast_launches_total",
    "Launches that came to an end: live, or failed.",
    "provider",
    "outcome",
  );
  readonly launchSeconds = histogram(
    "holdfast_launch_seconds",
    "From the intent to launch to the first command that could run.",
    "provider",
  );
  readonly stops = counter("holdfast_stops_total", "Ends of instances that were begun.", "provider", "cause");
  readonly evidence = counter(
    "holdfast_evidence_total",
    "Instances that are gone, by how that is known.",
    "provider",
    "kind",
  );
  readonly stopRetries = counter(
    "holdfast_stop_retries_total",
    "Attempts to end an instance after the first.",
    "provider",
  );
  readonly orphans = counter(
    "holdfast_orphans_found_total",
    "Instances found without a lease (orphan), or with one that was thought to be over (ghost).",
    "provider",
    "kind",
  );
  readonly reconcileSeconds = histogram(
    "holdfast_reconcile_seconds",
    "One pass over one sandbox, from the right to work on it to its release.",
  );
  readonly providerSeconds = histogram(
    "holdfast_provider_call_seconds",
    "Calls of a provider.",
    "provider",
    "call",
  );
  readonly providerFailures = counter(
    "holdfast_provider_call_failures_total",
    "Calls of a provider that failed.",
    "provider",
    "call",
  );

  // What clients ask for.
  readonly requests = counter(
    "holdfast_requests_total",
    "Requests that were answered.",
    "method",
    "route",
    "status",
  );
  readonly requestSeconds = histogram(
    "holdfast_request_seconds",
    "From a request to the beginning of its answer.",
    "method",
    "route",
  );
  readonly refusals = counter("holdfast_refusals_total", "Answers that were errors.", "code");
  readonly inFlight = gauge("holdfast_requests_in_flight", "Requests whose answer has not begun.");
  readonly openStreams = gauge("holdfast_open_streams", "Answers that are being sent: logs, events, files.");
  readonly openTerminals = gauge("holdfast_open_terminals", "Viewers of terminals.");
  readonly received = counter("holdfast_received_bytes_total", "Bytes of bodies from clients.", "kind");
  readonly sent = counter("holdfast_sent_bytes_total", "Bytes of bodies to clients.", "kind");
  readonly execSeconds = histogram(
    "holdfast_exec_seconds",
    "An exec as its client sees it, command and all.",
  );
  readonly execOverheadSeconds = histogram(
    "holdfast_exec_overhead_seconds",
    "The same without the command's own time; waking the sandbox is in it.",
  );

  // This process.
  readonly info = gauge("holdfast_info", "1; the version of the API is in the label.", "version");
  readonly startTime = gauge("process_start_time_seconds", "When this server was started.");
  readonly cpu = counter("process_cpu_seconds_total", "CPU time of this server.");
  readonly memory = gauge("process_resident_memory_bytes", "Memory of this server.");

  /** Everything, as Prometheus reads it. */
  print(): string {
    return this.all()
      .map((metric) => metric.print())
      .join("");
  }

  all(): Metric[] {
    return Object.values(this).filter((one) => one instanceof Value || one instanceof Histogram);
  }
}

function counter(name: string, help: string, ...labels: string[]): Value {
  return new Value({ type: "counter", name, help, labels });
}

function gauge(name: string, help: string, ...labels: string[]): Value {
  return new Value({ type: "gauge", name, help, labels });
}

function histogram(name: string, help: string, ...labels: string[]): Histogram {
  return new Histogram({ name, help, labels });
}
