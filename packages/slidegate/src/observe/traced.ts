// traced(): creates a span for each decision.
import { type Attributes, type Span, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api'
import type { Decision } from '../decision.ts'
import { checkOptions, SlidegateError, StoreUnavailableError, WaitError } from '../errors.ts'
import type { AnyKey } from '../key.ts'
import type { Limiter } from '../limiter.ts'
import { ERROR_TYPE, POLICY, RESULT, resultOf, SOURCE } from './attributes.ts'

/** Options for {@link traced}. */
export interface TracedOptions {
  /** Creates the spans. Default: `trace.getTracer('slidegate')`. */
  readonly tracer?: Tracer
  /** Additional attributes for every span. */
  readonly attributes?: Attributes
}

/** Methods that don't make a decision. */
const UNTRACED = [
  ...(['peek', 'charge', 'waiting', 'settle', 'cancel', 'release', 'extend', 'list', 'explain'] as const),
  ...(['refund', 'reset', 'block', 'unblock', 'isBlocked', 'stats', 'close'] as const),
]

/**
 * Wraps a limiter to create a span for each decision.
 *
 * It traces `consume`, `consumeSync`, `consumeMany`, `acquire`, `wait`, `schedule` and `reserve`. The parent is the active span.
 * The attributes are the limiter, the result, the source, the cost, the denying limits, and the time in the queue. The span of
 * `schedule` ends when its task starts. Spans never contain keys. They omit error messages, which may contain a key.
 *
 * Decisions, permits and reservations from the wrapper also work with the original limiter.
 *
 * @throws {SlidegateError} `invalid_option`
 */
export function traced<Key extends AnyKey>(limiter: Limiter<Key>, options: TracedOptions = {}): Limiter<Key> {
  checkOptions(options, 'traced', { tracer: true, attributes: true })
  const { tracer = trace.getTracer('slidegate'), attributes } = options
  const settings = { attributes: { ...attributes, [POLICY]: limiter.name } }
  const start = (operation: string): Span => tracer.startSpan(`slidegate.${operation}`, settings)

  const same: Limiter<Key> = {
    ...untraced(limiter),
    name: limiter.name,
    limits: limiter.limits,
    get overrides() {
      return limiter.overrides
    },
    consume(key, options) {
      return traceResult(start('consume'), limiter.consume(key, options), setDecision)
    },
    consumeSync(key, options) {
      const span = start('consumeSync')
      if (!span.isRecording()) return limiter.consumeSync(key, options)
      try {
        const decision = limiter.consumeSync(key, options)
        setDecision(span, decision)
        span.end()
        return decision
      } catch (error) {
        // Adapters try consumeSync before consume, so the error "unsupported" isn't a failed decision.
        if (!isSyncUnsupported(error)) endFailed(span, error)
        throw error
      }
    },
    consumeMany(requests) {
      return traceResult(start('consumeMany'), limiter.consumeMany(requests), setDecisions)
    },
    acquire(key, options) {
      return traceResult(start('acquire'), limiter.acquire(key, options), setDecided)
    },
    reserve(key, estimate, options) {
      return traceResult(start('reserve'), limiter.reserve(key, estimate, options), setDecided)
    },
    wait(key, options) {
      const span = start('wait')
      const sinceMs = performance.now()
      return traceResult(span, limiter.wait(key, options), (_, decision) =>
        setServed(span, decision, sinceMs),
      )
    },
    schedule(key, task, options) {
      // Passed on without a span, because the limiter rejects this argument.
      if (typeof task !== 'function') return limiter.schedule(key, task, options)
      const span = start('schedule')
      if (!span.isRecording()) return limiter.schedule(key, task, options)
      const sinceMs = performance.now()
      const begin = (decision: Decision) => {
        setServed(span, decision, sinceMs)
        span.end()
        return task(decision)
      }
      const result = limiter.schedule(key, begin, options)
      // The span ends when the task starts, so later errors are the task's own.
      result.catch((error) => span.isRecording() && endFailed(span, error))
      return result
    },
    on(event, listener) {
      limiter.on(event, listener)
      return same
    },
    off(event, listener) {
      limiter.off(event, listener)
      return same
    },
  }
  return same
}

function untraced<Key extends AnyKey>(limiter: Limiter<Key>): Pick<Limiter<Key>, (typeof UNTRACED)[number]> {
  const methods = UNTRACED.map((name) => [name, limiter[name].bind(limiter)])
  return Object.fromEntries(methods)
}

/** Ends the span before the caller continues. Does nothing if the span isn't recorded. */
function traceResult<T>(
  span: Span,
  answer: Promise<T>,
  setAttributes: (span: Span, answer: T) => void,
): Promise<T> {
  if (span.isRecording()) {
    answer.then(
      (settled) => {
        setAttributes(span, settled)
        span.end()
      },
      (error) => endFailed(span, error),
    )
  }
  return answer
}

function setDecision(span: Span, { allowed, source, cost, deniedBy, retryAfterMs }: Decision): void {
  span.setAttributes({ [RESULT]: resultOf(allowed), [SOURCE]: source, 'slidegate.cost': cost })
  if (!allowed) setDenial(span, deniedBy, retryAfterMs)
}

function setDenial(span: Span, deniedBy: readonly string[], retryAfterMs: number): void {
  span.setAttribute('slidegate.denied_by', [...deniedBy])
  // Not all exporters support Infinity.
  if (Number.isFinite(retryAfterMs)) span.setAttribute('slidegate.retry_after_ms', retryAfterMs)
}

function setDecided(span: Span, { decision }: { readonly decision: Decision }): void {
  setDecision(span, decision)
}

function setServed(span: Span, decision: Decision, sinceMs: number): void {
  setDecision(span, decision)
  span.setAttribute('slidegate.time_in_queue_ms', performance.now() - sinceMs)
}

function setDecisions(span: Span, decisions: readonly Decision[]): void {
  const acquired = decisions.filter(({ allowed }) => allowed).length
  const denied = decisions.length - acquired
  const cost = decisions.reduce((sum, decision) => sum + decision.cost, 0)
  span.setAttributes({ 'slidegate.acquired': acquired, 'slidegate.denied': denied, 'slidegate.cost': cost })
}

function endFailed(span: Span, error: unknown): void {
  const type = typeOf(error)
  span.setAttribute(ERROR_TYPE, type)
  if (error instanceof WaitError) {
    span.setAttribute(RESULT, resultOf(false))
    if (error.decision !== undefined) setDenial(span, error.decision.deniedBy, error.decision.retryAfterMs)
  }
  // Omits the message, which may contain the key.
  span.addEvent('exception', { 'exception.type': error instanceof Error ? error.name : typeof error })
  span.setStatus({ code: SpanStatusCode.ERROR, message: type })
  span.end()
}

/** Returns the type of an error, as a word from a fixed set. */
function typeOf(error: unknown): string {
  if (error instanceof StoreUnavailableError || error instanceof WaitError) return error.reason
  if (error instanceof SlidegateError) return error.code
  return error instanceof Error ? error.name : '_OTHER'
}

function isSyncUnsupported(error: unknown): boolean {
  return error instanceof SlidegateError && error.code === 'sync_unsupported'
}
