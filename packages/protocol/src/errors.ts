/** Every failure a caller can act on. Add a code when a caller would do something different. */
export const httpStatusOf = {
  invalid_argument: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  already_exists: 409,
  wrong_state: 409,
  state_lost: 409,
  spec_conflict: 409,
  cleanup_pending: 409,
  cleanup_quarantined: 409,
  claim_held: 409,
  claim_lost: 409,
  quiesced: 409,
  deleting: 409,
  fence_stale: 409,
  gone: 410,
  record_expired: 410,
  precondition_failed: 412,
  too_large: 413,
  git_failed: 422,
  limit_reached: 429,
  quota_exceeded: 429,
  internal: 500,
  unsupported: 501,
  keeper_lost: 502,
  unavailable: 503,
  provider_unavailable: 503,
  launch_failed: 503,
  capacity_exhausted: 503,
  capacity_unknown: 503,
  host_storage_unusable: 503,
  disk_full: 507,
} as const satisfies Record<string, number>;

/** What went wrong, for a program: docs/errors.md has each with its remedy. */
export type ErrorCode = keyof typeof httpStatusOf;

export const errorCodes = Object.keys(httpStatusOf) as [ErrorCode, ...ErrorCode[]];

export const startedAnswers = ["no", "yes", "unknown"] as const;
/** Whether the work that a failed call asked for was begun. */
export type Started = (typeof startedAnswers)[number];

/** An error on the wire; `error-body.ts` has its schema. This file stays free of zod: the SDK ships it. */
export interface ErrorBody {
  error: {
    code: ErrorCode;
    message: string;
    hint?: string | undefined;
    retryable: boolean;
    details?: Record<string, unknown> | undefined;
    started?: Started | undefined;
  };
}

export interface ErrorFacts {
  hint?: string | undefined;
  retryable?: boolean | undefined;
  details?: Record<string, unknown> | undefined;
  started?: Started | undefined;
  cause?: unknown;
}

const retryableByNature: ReadonlySet<ErrorCode> = new Set([
  "cleanup_pending",
  "quiesced",
  "cleanup_quarantined",
  "capacity_exhausted",
  "capacity_unknown",
  "quota_exceeded",
  "limit_reached",
  "unavailable",
  "provider_unavailable",
]);

/**
 * The one error that crosses every boundary: provider, core, HTTP, SDK, CLI. `code` says what it is, `hint` what to do
 * about it, `retryable` whether the same call may work later, `started` whether the work was begun.
 *
 * @example
 * ```ts
 * try {
 *   await sbx.exec("make", { ifGeneration: 1 });
 * } catch (error) {
 *   if (!(error instanceof HoldfastError)) throw error;
 *   console.log(error.code, error.hint);   // "state_lost": it is another instance than we remember
 * }
 * ```
 */
export class HoldfastError extends Error {
  override readonly name = "HoldfastError";
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly retryable: boolean;
  readonly details: Record<string, unknown> | undefined;
  readonly started: Started | undefined;

  constructor(code: ErrorCode, message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.code = code;
    this.hint = facts.hint;
    this.retryable = facts.retryable ?? retryableByNature.has(code);
    this.details = facts.details;
    this.started = facts.started;
  }

  /** The HTTP status that it travels with. */
  get status(): number {
    return httpStatusOf[this.code];
  }

  /** @internal */
  toBody(): ErrorBody {
    const { code, message, hint, retryable, details, started } = this;
    return {
      error: {
        code,
        message,
        retryable,
        ...(hint !== undefined && { hint }),
        ...(details !== undefined && { details }),
        ...(started !== undefined && { started }),
      },
    };
  }

  /**
   * The way back from the wire; `undefined` if it is not one of our error bodies.
   *
   * @internal
   */
  static fromBody(body: unknown): HoldfastError | undefined {
    const error = isObject(body) ? body.error : undefined;
    if (!isObject(error) || !isErrorCode(error.code) || typeof error.message !== "string") return undefined;
    return new HoldfastError(error.code, error.message, {
      hint: typeof error.hint === "string" ? error.hint : undefined,
      retryable: typeof error.retryable === "boolean" ? error.retryable : undefined,
      details: isObject(error.details) ? error.details : undefined,
      started: startedAnswers.find((answer) => answer === error.started),
    });
  }
}

function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(httpStatusOf, value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
