// Schemas for the queries and answers that instances send to each other.

import { Ajv, type ValidateFunction } from 'ajv'
import { type TSchema, Type } from '../json-schema.ts'

const Count = Type.Number({ minimum: 0 })
const Text = Type.String({ maxLength: 65_536 })
const Name = Type.String({ maxLength: 256 })
const Counts = Type.Array(Count, { maxItems: 1024 })
const Named = (value: TSchema) => Type.Record(Name, value, { maxProperties: 10_000 })
const Histogram = Type.Object({ bounds: Counts, counts: Counts, sum: Count })
const Seconds = Type.Object({
  ...{ latest: Type.Integer({ minimum: 0 }), allowed: Counts, denied: Counts },
  ...{ shadowDenied: Counts, withoutStore: Counts },
})

const Counted = Type.Object({ word: Text, count: Count, error: Count })
const Summaries = Type.Array(
  Type.Object({ floor: Count, counted: Type.Array(Counted, { maxItems: 4096 }) }),
  { maxItems: 4 },
)

export const ProcessShape = Type.Object({
  ...{ process: Name, id: Name, host: Name, version: Name },
  ...{ pid: Type.Integer({ minimum: 0 }), startedAtMs: Count },
})

/** The schema for a recorded ban or block. */
export const BanShape = Type.Object({
  ...{ limiter: Name, dimension: Type.Optional(Name), key: Type.String({ maxLength: 256 }) },
  ...{ isHashed: Type.Optional(Type.Literal(true)), type: Type.Enum(['ban', 'block']), who: Name },
  ...{ limits: Type.Optional(Type.Array(Name, { maxItems: 1024 })), denials: Type.Optional(Count) },
  ...{ withinMs: Type.Optional(Count), level: Type.Optional(Count), reason: Type.Optional(Text) },
  ...{ sinceMs: Count, untilMs: Type.Union([Count, Type.Null()]) },
})

const State = Type.Object({
  stats: Type.Object({
    ...{ storeErrors: Named(Count), withoutStore: Named(Count), waitErrors: Named(Count), waits: Histogram },
    ...{ breakerOpened: Count, isStoreDown: Type.Boolean(), clockSteps: Count, permits: Count },
  }),
  waiting: Type.Object({ length: Count, expectedWaitMs: Type.Union([Count, Type.Null()]) }),
})

/**
 * Schemas for answers, by query. An answer may come from another version of the service, or from anyone who
 * can write to Redis.
 */
const ANSWERS: Readonly<Record<string, TSchema>> = {
  usage: Type.Array(Type.Object({ seconds: Count, counts: Counts }), { minItems: 4, maxItems: 4 }),
  top: Type.Object({ spanMs: Count, summaries: Summaries, callers: Text }),
  states: Named(State),
  limits: Type.Array(
    Type.Object({
      ...{ name: Name, denials: Count, shadowDenials: Count, nearLimit: Count, utilization: Histogram },
    }),
    { maxItems: 128 },
  ),
  denials: Named(Count),
  shadow: Type.Boolean(),
  tail: Type.Object({
    lines: Type.Array(
      Type.Object({
        ...{ atMs: Count, limiter: Name, allowed: Type.Boolean(), cost: Count, source: Name },
        ...{ deniedBy: Type.Array(Name), key: Type.Union([Text, Named(Text)]) },
      }),
      { maxItems: 1000 },
    ),
    lost: Count,
  }),
  live: Type.Object({
    process: ProcessShape,
    isRedis: Type.Boolean(),
    fileState: Type.Enum(['applied', 'invalid', 'restart']),
    calls: Type.Optional(Type.Object({ spanMs: Count, calls: Count, requests: Count, callMs: Histogram })),
    limiters: Type.Array(
      Type.Object({
        ...{ name: Name, waiting: Count, isStoreDown: Type.Boolean(), latest: Seconds },
        lastMinute: Type.Object({ seconds: Count, allowed: Count, denied: Count, shadowDenied: Count }),
        outage: Type.Optional(Type.Object({ sinceMs: Count, untilMs: Type.Optional(Count) })),
        ...{ onStoreError: Type.Enum(['throw', 'deny', 'allow', 'local']), instances: Count },
      }),
      { maxItems: 10_000 },
    ),
  }),
  callers: Named(Type.Object({ requests: Count, top: Summaries, sketch: Text })),
  seconds: Seconds,
}

const Names = Type.Array(Name, { maxItems: 10_000 })

/** Schemas for the arguments, by query. */
const QUESTIONS: Readonly<Record<string, TSchema>> = {
  ...{ usage: Name, limits: Name, denials: Name, states: Names, seconds: Names },
  ...{ shadow: Type.Unknown(), live: Type.Unknown(), callers: Type.Unknown() },
  top: Type.Object({ limiter: Name, by: Type.Enum(['requests', 'denials']) }),
  tail: Type.Object({
    ...{ id: Name, take: Type.Boolean(), end: Type.Optional(Type.Boolean()) },
    filter: Type.Object({
      ...{ limiters: Names, key: Type.Optional(Text), denied: Type.Optional(Type.Boolean()) },
    }),
  }),
}

const ajv = new Ajv({ validateSchema: false, code: { optimize: false } })
const checks = new Map<TSchema, ValidateFunction>()

/** Returns whether this is a valid answer to a query. */
export function isAnswer(question: string, answer: unknown): boolean {
  return fitsIn(ANSWERS, question, answer)
}

/** Returns whether the query is known and its argument is valid. */
export function isQuestion(question: string, argument: unknown): boolean {
  return fitsIn(QUESTIONS, question, argument)
}

function fitsIn(shapes: Readonly<Record<string, TSchema>>, question: string, value: unknown): boolean {
  const shape = Object.hasOwn(shapes, question) ? shapes[question] : undefined
  return shape !== undefined && hasShape(shape, value)
}

export function hasShape(shape: TSchema, value: unknown): boolean {
  let check = checks.get(shape)
  if (check === undefined) {
    check = ajv.compile(shape)
    checks.set(shape, check)
  }
  return check(value) as boolean
}
