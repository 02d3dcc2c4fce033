import { createHash, timingSafeEqual } from 'node:crypto'
import type { AuthConfig, Role, TokenConfig } from '../config/schema.ts'
import { fits } from './pattern.ts'
import { ServiceError } from './service-error.ts'

const RANK: Readonly<Record<Role, number>> = { check: 1, read: 2, admin: 3 }

/** One who asks, and what he may do. */
export class Caller {
  /** What the audit calls him. */
  readonly name: string
  readonly role: Role
  /** Patterns of the limiters that he may use; left out: all. */
  readonly limiters: readonly string[] | undefined
  readonly #ownLimits: readonly string[]

  constructor(name: string, role: Role, limiters?: readonly string[], ownLimits: readonly string[] = []) {
    this.name = name
    this.role = role
    this.limiters = limiters
    this.#ownLimits = ownLimits
  }

  /** @throws {ServiceError} `forbidden` */
  must(role: Role): void {
    if (RANK[this.role] >= RANK[role]) return
    throw new ServiceError(403, 'forbidden', `${this.name} has the role ${this.role}; this needs ${role}`)
  }

  may(limiter: string): boolean {
    return this.limiters === undefined || this.limiters.some((pattern) => fits(pattern, limiter))
  }

  /** A limiter that the caller may not use is as one that is not there. @throws {ServiceError} `unknown_limiter` */
  mustReach(limiter: string): void {
    if (this.may(limiter)) return
    throw new ServiceError(404, 'unknown_limiter', `there is no limiter ${JSON.stringify(limiter)}`)
  }

  /** Whether the caller may declare the limits of limiters of this name. */
  declares(limiter: string): boolean {
    return this.#ownLimits.some((pattern) => fits(pattern, limiter))
  }
}

/** Knows callers by their tokens. Nothing of a token can be learnt from how long it takes. */
export class Gatekeeper {
  #tokens: readonly (readonly [digest: Buffer, caller: Caller])[] = []
  #anonymous: Caller | undefined

  /** @param isLoopback whether only programs of this machine can ask */
  constructor(auth: AuthConfig | undefined, isLoopback: boolean) {
    this.reload(auth, isLoopback)
  }

  reload(auth: AuthConfig = {}, isLoopback: boolean): void {
    const { tokens = [], anonymous = isLoopback && tokens.length === 0 ? 'admin' : false } = auth
    this.#tokens = tokens.map((token) => [
      digestIn(token),
      new Caller(token.name, token.role, token.limiters, token.ownLimits),
    ])
    // Without tokens nobody has said what he may not do.
    const ownLimits = tokens.length === 0 && auth.anonymous === undefined ? ['*'] : []
    this.#anonymous =
      anonymous === false ? undefined : new Caller('anonymous', anonymous, undefined, ownLimits)
  }

  /**
   * @param authorization the header, as it came
   * @throws {ServiceError} `unauthorized`
   */
  admit(authorization: string | undefined): Caller {
    const secret = /^Bearer +([^\s]+) *$/i.exec(authorization ?? '')?.[1]
    if (secret === undefined) {
      if (this.#anonymous !== undefined && authorization === undefined) return this.#anonymous
      throw new ServiceError(401, 'unauthorized', 'a token is needed: Authorization: Bearer <token>')
    }
    const digest = digestOf(secret)
    let found: Caller | undefined
    // All are compared, whichever it is.
    for (const [known, caller] of this.#tokens) if (timingSafeEqual(known, digest)) found ??= caller
    if (found === undefined) throw new ServiceError(401, 'unauthorized', 'the token is not known')
    return found
  }
}

function digestIn({ token, sha256 }: TokenConfig): Buffer {
  return sha256 === undefined ? digestOf(token ?? '') : Buffer.from(sha256, 'hex')
}

function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}
