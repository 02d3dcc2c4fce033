// What the live page is told: types alone, which the page shares.

import type { Decision, Source } from 'slidegate'

/** A process of the service that answers to the same store. */
export interface InstanceTold {
  /** Drawn when it starts; its workers have the same. */
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly version: string
  readonly startedAtMs: number
  /** Whether it is the one that was asked. */
  readonly isSelf: boolean
}

/** What is seen of a store. */
export interface StoreTold {
  readonly kind: 'redis' | 'memory'
  /** Whether requests reach it: no breaker is open. */
  readonly up: boolean
  /** Calls of the last second; of a store in this process none are counted. */
  readonly callsPerSecond: number
  /** Milliseconds of the calls of the last seconds, as a client sees them; `null` where there were none. */
  readonly callMs: { readonly p50: number; readonly p99: number } | null
  /** Requests that travelled in one call, on average over the last seconds; `null` where there were none. */
  readonly requestsPerCall: number | null
  /** What Redis says of itself, a row for each server that could be asked. */
  readonly servers: readonly RedisServerTold[]
}

export interface RedisServerTold {
  /** `host:port`. */
  readonly node: string
  readonly up: boolean
  readonly version?: string
  readonly role?: string
  readonly usedMemoryBytes?: number
  /** 0: no bound. */
  readonly maxMemoryBytes?: number
  readonly commandsPerSecond?: number
  readonly evictedKeys?: number
  readonly connectedClients?: number
  /** The greatest over its replicas. */
  readonly replicaLagBytes?: number
  /** Microseconds of a call of our script on average, since the server has started. */
  readonly scriptMicros?: number
}

/** Of one second. */
export interface LimiterRates {
  readonly name: string
  readonly allowedPerSecond: number
  readonly deniedPerSecond: number
  /** Requests that a shadow limit would have denied. */
  readonly shadowDeniedPerSecond: number
  /** Requests decided without the store. */
  readonly withoutStorePerSecond: number
  /** Who wait now. */
  readonly waiting: number
  /** Different callers of the last minutes, estimated. */
  readonly callers: number
  readonly isStoreDown: boolean
}

/** The last whole second, of all instances together. */
export interface Overview {
  /** Epoch milliseconds at which that second began. */
  readonly atMs: number
  readonly instances: readonly InstanceTold[]
  /** Processes that are known and have not answered. */
  readonly missing: number
  readonly store: StoreTold
  /** Those that the reader may see, in the order of their names. */
  readonly limiters: readonly LimiterRates[]
}

/** The last five minutes by the second, of all instances together: columns of equal length, the oldest first. */
export interface History {
  /** Epoch seconds. */
  readonly seconds: readonly number[]
  readonly allowed: readonly number[]
  readonly denied: readonly number[]
  readonly shadowDenied: readonly number[]
}

/** What a limit has said, on all instances since they were started. */
export interface LimitCountsTold {
  /** Of a limiter with dimensions `<dimension>.<limit>`. */
  readonly name: string
  /** Requests that it was asked about. */
  readonly requests: number
  /** Those that it had no room for, enforced; and as a shadow limit. */
  readonly denials: number
  readonly shadowDenials: number
  /** Admitted with 80% of it used, or more. */
  readonly near: number
  /** The share of it that was used once a request was decided, on average; `null` where there was none. */
  readonly meanUse: number | null
}

/** A line of a comparison. */
export interface DiffLine {
  readonly kind: 'same' | 'added' | 'removed'
  readonly text: string
}

/** The configuration: as it is in force, and as it stands in the file. Secrets are left out of both. */
export interface ConfigurationTold {
  /** Empty where it was started without one. */
  readonly file: string
  /** YAML. */
  readonly inForce: string
  /** What is wrong with the file as it stands there now; none: it is, or is about to be, in force. */
  readonly problems: readonly ProblemTold[]
  /** From what is in force to what the file says; empty where they are the same, or the file cannot be read. */
  readonly diff: readonly DiffLine[]
  /** What is said by an operator besides: limiter -> limit -> whether it is a shadow limit. */
  readonly shadowings: Readonly<Record<string, Readonly<Record<string, boolean>>>>
}

export interface ProblemTold {
  readonly message: string
  /** From 1. */
  readonly line: number
  readonly column: number
}

/** What is told of a span. */
export interface SpanUsage {
  /** The span that was asked for. */
  readonly spanSeconds: number
  /** How much of it was counted: less where the service has not run for as long. */
  readonly seconds: number
  readonly allowed: number
  readonly denied: number
  /** Requests that a shadow limit would have denied. */
  readonly shadowDenied: number
  readonly allowedPerSecond: number
  readonly deniedPerSecond: number
  /** Decisions per second, by where they came from. */
  readonly perSecondBySource: Readonly<Record<Source, number>>
}

/** How often a key came: `count` at most, and `count - error` at least. */
export interface TopKey {
  readonly key: string
  /** Where the limiter has dimensions: that of the key. */
  readonly dimension?: string
  readonly count: number
  readonly error: number
}

/** A decision as readers see it. */
export interface TailLine extends Pick<Decision, 'atMs' | 'allowed' | 'cost' | 'deniedBy' | 'source'> {
  readonly limiter: string
  readonly key: string | Readonly<Record<string, string>>
  /** `null` where no limit is enforced. */
  readonly remaining: number | null
  /** `null` where it will never be admitted. */
  readonly retryAfterMs: number | null
  /** `null`: until it is unblocked. */
  readonly blockedMs?: number | null
  /** Shadow limits that had no room. */
  readonly shadowDeniedBy?: readonly string[]
}

/** Something that somebody has done to the service. */
export interface AuditEntry {
  readonly id: string
  /** By the clock of Redis, where that is the store. */
  readonly atMs: number
  readonly who: string
  readonly what: string
  readonly limiter?: string
  /** Of limiters with `hashKeys` as it is stored. */
  readonly key?: string | Readonly<Record<string, string>>
  readonly detail?: object
  /** Which process was asked: its host and its number. */
  readonly instance: string
  /** `unknown`: it was begun, and how it ended was not kept. */
  readonly result: 'done' | 'failed' | 'unknown'
  /** Why it has failed. */
  readonly error?: string
}
