import type { RedisServerTold } from '../admin/overview.ts'

/** What a server answers to `INFO`, by name. What it does not say is left out. */
export class RedisInfo {
  readonly #values = new Map<string, string>()

  constructor(text: string) {
    for (const line of text.split('\r\n')) {
      const colon = line.indexOf(':')
      if (colon > 0) this.#values.set(line.slice(0, colon), line.slice(colon + 1))
    }
  }

  number(name: string): number | undefined {
    const text = this.#values.get(name)
    const value = text === undefined || text === '' ? Number.NaN : Number(text)
    return Number.isFinite(value) ? value : undefined
  }

  get cpuSeconds(): number | undefined {
    const [user, system] = [this.number('used_cpu_user'), this.number('used_cpu_sys')]
    return user === undefined || system === undefined ? undefined : user + system
  }

  /** Calls of scripts, whoever made them, and how long they took. */
  get scripts(): { readonly calls: number; readonly seconds: number } | undefined {
    // A server that tells of no command at all was not allowed to, or was asked by somebody who sees none.
    if (!Array.from(this.#values.keys()).some((name) => name.startsWith('cmdstat_'))) return undefined
    const both = ['cmdstat_evalsha', 'cmdstat_eval'].map((name) => fieldsOf(this.#values.get(name) ?? ''))
    const sum = (field: string) => both.reduce((all, fields) => all + Number(fields.get(field) ?? 0), 0)
    return { calls: sum('calls'), seconds: sum('usec') / 1e6 }
  }

  /** How many bytes the slowest of its replicas is behind; none without replicas. */
  get replicaLagBytes(): number | undefined {
    const end = this.number('master_repl_offset')
    if (end === undefined || this.#values.get('role') !== 'master') return undefined
    const lags = Array.from(this.#values).flatMap(([name, text]) => {
      const offset = /^slave\d+$/.test(name) ? fieldsOf(text).get('offset') : undefined
      return offset === undefined ? [] : [Math.max(0, end - Number(offset))]
    })
    return lags.length === 0 ? undefined : Math.max(...lags)
  }

  told(): Omit<RedisServerTold, 'node' | 'up'> {
    const { scripts } = this
    const values = {
      version: this.#values.get('valkey_version') ?? this.#values.get('redis_version'),
      role: this.#values.get('role'),
      usedMemoryBytes: this.number('used_memory'),
      maxMemoryBytes: this.number('maxmemory'),
      commandsPerSecond: this.number('instantaneous_ops_per_sec'),
      evictedKeys: this.number('evicted_keys'),
      connectedClients: this.number('connected_clients'),
      replicaLagBytes: this.replicaLagBytes,
      scriptMicros: scripts && scripts.calls > 0 ? (scripts.seconds * 1e6) / scripts.calls : undefined,
    }
    return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
  }
}

/** Of `calls=3,usec=120`. */
function fieldsOf(text: string): ReadonlyMap<string, string> {
  return new Map(text.split(',').map((field) => field.split('=') as [string, string]))
}
