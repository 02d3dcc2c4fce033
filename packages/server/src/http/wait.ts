// POST /v1/wait.

import type { FastifyReply } from 'fastify'
import { type AnyKey, type Decision, type Limiter, WaitError } from 'slidegate'
import { parseDuration } from '../../../replay/src/text.ts'
import type { CapsConfig } from '../config/schema.ts'
import { type Static, Type } from '../json-schema.ts'
import type { Caller } from '../service/gatekeeper.ts'
import type { ActiveLimiter } from '../service/service.ts'
import { ServiceError } from '../service/service-error.ts'
import type { App, Context } from './context.ts'
import { decided } from './decisions.ts'
import { limiterFor, optionsOf, type RequestBody } from './requests.ts'
import { Cost, closed, Key, LimiterName, Plan, problemAnswer, shared } from './schemas.ts'

const BodySchema = closed(
  {
    limiter: LimiterName,
    key: Key,
    cost: Type.Optional(Cost),
    priority: Type.Optional(
      Type.Integer({
        minimum: -1_000_000,
        maximum: 1_000_000,
        description:
          'If several requests are waiting for the same key on this instance, the one with the highest priority goes first. Default: 0.',
      }),
    ),
    maxWaitMs: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 2 ** 31 - 1,
        description:
          'Maximum wait in milliseconds, capped by `caps.wait` in the configuration. The default for both is 30 s.',
      }),
    ),
    plan: Type.Optional(Plan),
  },
  { examples: [{ limiter: 'api', key: 'ann', maxWaitMs: 2000 }] },
)
type WaitBody = RequestBody & Pick<Static<typeof BodySchema>, 'priority' | 'maxWaitMs'>

const DEFAULT_WAITING_MS = 30_000
const MOST_WAITING_MS = 2 ** 31 - 1

/** The error that ends waiting requests when the service shuts down. */
const CLOSING = new ServiceError(503, 'closing', 'this instance is shutting down; retry')

const REPLACED = Symbol('a reload replaced the limiter')

export function waitRoutes(app: App, { service, metrics, log }: Context): void {
  const waiting = new Map<AbortController, ActiveLimiter>()
  let isClosing = false
  // Waiting requests must not delay the shutdown.
  app.addHook('preClose', (done) => {
    isClosing = true
    for (const controller of waiting.keys()) controller.abort(CLOSING)
    done()
  })
  service.onReplaced((former) => {
    for (const [controller, active] of waiting) if (active === former) controller.abort(REPLACED)
  })
  app.post(
    '/v1/wait',
    {
      config: { role: 'check' },
      schema: {
        summary: 'Wait until allowed',
        description:
          'Charges the request as soon as its limits allow it, then responds. First come, first served. A client that disconnects leaves the queue and is charged nothing.',
        tags: ['decisions'],
        body: BodySchema,
        response: {
          200: { description: 'Allowed and charged.', ...shared('Decision') },
          429: problemAnswer(
            'Not allowed: `wait_full` (too many requests are waiting), `wait_timeout` (the wait would be too long), `wait_impossible` (the cost exceeds a limit).',
          ),
        },
      },
    },
    async ({ body, caller }, reply) => {
      const { limiter, maxWaitMs = DEFAULT_WAITING_MS } = body as WaitBody
      const sinceMs = performance.now()
      const untilMs = sinceMs + Math.min(maxWaitMs, mostWaitingMs(service.config.caps))
      for (;;) {
        try {
          const answer = await wait(
            body as WaitBody,
            caller,
            reply,
            Math.max(0, Math.ceil(untilMs - performance.now())),
          )
          metrics.limiters.waited(limiter, performance.now() - sinceMs)
          return answer
        } catch (error) {
          if (!(error instanceof WaitError)) throw error
          if (error.cause === REPLACED) continue
          metrics.limiters.waitFailed(limiter, error.reason)
          throw error
        }
      }
    },
  )

  async function wait(
    body: WaitBody,
    caller: Caller,
    reply: FastifyReply,
    maxWaitMs: number,
  ): Promise<unknown> {
    const { limiter: name, key, priority } = body
    const active = limiterFor(service, caller, name)
    const options = optionsOf(active, body)
    const controller = new AbortController()
    let isGone = false
    const hangUp = () => {
      isGone = true
      controller.abort()
    }
    if (isClosing) controller.abort(CLOSING)
    waiting.set(controller, active)
    reply.raw.once('close', hangUp)
    try {
      const decision = await active.limiter.wait(key, {
        ...options,
        ...(priority !== undefined && { priority }),
        maxWaitMs,
        signal: controller.signal,
      })
      if (isGone) giveBack(active.limiter, key, decision)
      return decided(reply, name, decision)
    } catch (error) {
      if (!(error instanceof WaitError) || error.cause !== CLOSING) throw error
      reply.header('connection', 'close')
      throw CLOSING
    } finally {
      waiting.delete(controller)
      reply.raw.off('close', hangUp)
    }
  }

  /** Refunds a request that was allowed just as its client disconnected. */
  function giveBack(limiter: Limiter<AnyKey>, key: AnyKey, decision: Decision): void {
    limiter.refund(key, decision).catch((error) => {
      log.warn({ limiter: limiter.name, err: error }, 'failed to refund a request whose client disconnected')
    })
  }
}

function mostWaitingMs({ wait = DEFAULT_WAITING_MS }: CapsConfig = {}): number {
  const ms = typeof wait === 'number' ? wait : parseDuration(wait)
  return Math.min(ms ?? DEFAULT_WAITING_MS, MOST_WAITING_MS)
}
