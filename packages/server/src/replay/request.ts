/** A request that a log tells of. */
export interface LoggedRequest {
  readonly timeMs: number
  /** Whom the limits count. */
  readonly key: string
  /** Units; 1 unless told. */
  readonly cost?: number
  /** Where it stands in the log; requests of the same time are decided in this order. */
  readonly line: number
}
