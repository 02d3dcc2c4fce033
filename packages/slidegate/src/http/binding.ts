/** What a framework hands to its handlers; the first is, or carries, the request. */
export type HandlerArguments = readonly [request: unknown, ...rest: unknown[]]

/** How the guard reaches into a request of one framework. Each function maps, none decides. */
export interface Binding<Args extends HandlerArguments> {
  /**
   * The client's address as the framework has it; undefined where it has none.
   *
   * @throws {SlidegateError} `invalid_option` where the framework believes whatever callers say about it
   */
  address(...args: Args): string | undefined
  /** The address of the connection's other end; undefined where there is none to be seen. */
  peer(...args: Args): string | undefined
  /** A field of the request, by its name in lower case. Lines of one name are one list. */
  header(name: string, ...args: Args): string | undefined
  /** Whether fields of the request may be missing. Default: they never are. */
  isCut?(...args: Args): boolean
  /** Aborted when the client hangs up. Asked for only where a request has to wait. */
  signal(...args: Args): AbortSignal
  /** Whether a connection can be closed without an answer. */
  readonly canDrop: boolean
}

/**
 * What a handler of the Fetch API returns: no response where its platform knows what to make of that, as of a connection that
 * was upgraded.
 */
export type Answer = Response | undefined | null

/** What became of a response. */
export interface Answered {
  readonly status: number
  /** Whether all of it was sent, as far as this process knows; not where the client hung up before. */
  readonly isComplete: boolean
  /** A field of the response. */
  header(name: string): string | undefined
}
