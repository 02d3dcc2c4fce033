// Creates spans for decisions and exports them over OTLP.

import { context, ROOT_CONTEXT, type Tracer } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { type ExportResult, ExportResultCode, W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-base'
import type { Logger } from 'pino'
import type { AnyKey, Limiter } from 'slidegate'
import { traced } from 'slidegate/opentelemetry'
import { messageOf } from '../../../replay/src/errors.ts'
import type { TracingConfig } from '../config/schema.ts'
import { VERSION } from '../service/instance.ts'

/** Timeout for sending the last spans at shutdown. */
const CLOSE_MS = 5000

/** Headers or metadata with the caller's span. */
export interface TraceHeaders {
  readonly traceparent?: string | string[] | undefined
  readonly tracestate?: string | string[] | undefined
}

export interface TracingOptions {
  readonly config: TracingConfig
  /** The ID that all processes of this instance share. */
  readonly instance: string
  readonly log: Logger
}

/**
 * Creates a span for each decision, and sends the spans to a collector.
 *
 * Spans are sent in batches, without delaying requests. Up to 2,048 spans are queued, unless an environment
 * variable sets another number. Further spans are dropped.
 */
export class Tracing {
  readonly #provider: BasicTracerProvider
  readonly #tracer: Tracer
  readonly #propagator = new W3CTraceContextPropagator()

  /** @throws if environment variables are invalid */
  constructor({ config, instance, log }: TracingOptions) {
    const { endpoint, sampleRatio } = config === true ? {} : config
    const exporter = new OTLPTraceExporter(
      endpoint === undefined ? {} : { url: `${endpoint.replace(/\/+$/, '')}/v1/traces` },
    )
    const own = resourceFromAttributes({
      'service.name': 'slidegate',
      'service.version': VERSION,
      'service.instance.id': instance,
    })
    this.#provider = new BasicTracerProvider({
      // Environment variables take precedence.
      resource: own.merge(detectResources({ detectors: [envDetector] })),
      spanProcessors: [new BatchSpanProcessor(new Reported(exporter, log))],
      ...(sampleRatio !== undefined && {
        sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(sampleRatio) }),
      }),
    })
    this.#tracer = this.#provider.getTracer('slidegate', VERSION)
    // The process has one context manager, which another library may already have set.
    const manager = new AsyncLocalStorageContextManager().enable()
    if (!context.setGlobalContextManager(manager)) manager.disable()
  }

  /** Wraps a limiter so that each of its decisions gets a span. */
  traced<Key extends AnyKey>(limiter: Limiter<Key>): Limiter<Key> {
    return traced(limiter, { tracer: this.#tracer })
  }

  /** Runs a function so that its spans become children of the caller's span. */
  within<Result>(headers: TraceHeaders, run: () => Result): Result {
    if (headers.traceparent === undefined) return run()
    return context.with(this.#propagator.extract(ROOT_CONTEXT, headers, GETTER), run)
  }

  /** Sends the remaining spans, up to a timeout. Never rejects. */
  async close(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CLOSE_MS)
    })
    await Promise.race([this.#provider.shutdown().catch(() => {}), late])
    clearTimeout(timer)
  }
}

const GETTER = {
  get: (headers: TraceHeaders, name: string) => headers[name as keyof TraceHeaders],
  keys: (headers: TraceHeaders) => Object.keys(headers),
}

/** Logs when exporting spans starts to fail, and when it works again. */
class Reported implements SpanExporter {
  readonly #exporter: SpanExporter
  readonly #log: Logger
  #isSending = true

  constructor(exporter: SpanExporter, log: Logger) {
    this.#exporter = exporter
    this.#log = log
  }

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.#exporter.export(spans, (result) => {
      this.#report(result)
      done(result)
    })
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown()
  }

  #report({ code, error }: ExportResult): void {
    const isSending = code === ExportResultCode.SUCCESS
    if (isSending === this.#isSending) return
    this.#isSending = isSending
    if (isSending) this.#log.info('spans can be sent again')
    else this.#log.warn({ reason: messageOf(error) }, "can't send spans; they are dropped")
  }
}
