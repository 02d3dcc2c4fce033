// Spans of decisions, sent by OTLP.

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
import { messageOf } from '#replay/errors.js'
import type { TracingConfig } from '../config/schema.ts'
import { VERSION } from '../service/instance.ts'

/** After which spans that could not be sent when the service ends are given up. */
const CLOSE_MS = 5000

/** What tells of the span of whoever asks, as headers and metadata have it. */
export interface TraceHeaders {
  readonly traceparent?: string | string[] | undefined
  readonly tracestate?: string | string[] | undefined
}

export interface TracingOptions {
  readonly config: TracingConfig
  /** What all processes of this instance call themselves. */
  readonly instance: string
  readonly log: Logger
}

/**
 * A span for each decision, sent to a collector now and then. At most 2,048 wait to be sent, unless the environment says
 * otherwise: where they cannot be, others are lost. Nobody waits for it.
 */
export class Tracing {
  readonly #provider: BasicTracerProvider
  readonly #tracer: Tracer
  readonly #propagator = new W3CTraceContextPropagator()

  /** @throws for what the environment says and cannot be */
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
      // What the environment says comes before.
      resource: own.merge(detectResources({ detectors: [envDetector] })),
      spanProcessors: [new BatchSpanProcessor(new Reported(exporter, log))],
      ...(sampleRatio !== undefined && {
        sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(sampleRatio) }),
      }),
    })
    this.#tracer = this.#provider.getTracer('slidegate', VERSION)
    // One for the process, be it ours or that of somebody before us.
    const manager = new AsyncLocalStorageContextManager().enable()
    if (!context.setGlobalContextManager(manager)) manager.disable()
  }

  /** The same limiter, whose decisions have spans. */
  traced<Key extends AnyKey>(limiter: Limiter<Key>): Limiter<Key> {
    return traced(limiter, { tracer: this.#tracer })
  }

  /** Runs something whose spans are below that of whoever asks. */
  within<Result>(headers: TraceHeaders, run: () => Result): Result {
    if (headers.traceparent === undefined) return run()
    return context.with(this.#propagator.extract(ROOT_CONTEXT, headers, GETTER), run)
  }

  /** Sends what waits to be sent, or gives it up. Never rejects. */
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

/** Says in the log when spans can not be sent any more, and when they can again. */
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
      this.#tell(result)
      done(result)
    })
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown()
  }

  #tell({ code, error }: ExportResult): void {
    const isSending = code === ExportResultCode.SUCCESS
    if (isSending === this.#isSending) return
    this.#isSending = isSending
    if (isSending) this.#log.info('spans can be sent again')
    else this.#log.warn({ reason: messageOf(error) }, 'spans cannot be sent: they are lost')
  }
}
