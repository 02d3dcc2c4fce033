// Authenticates callers by their tokens, and checks roles. Rejects proxies if there are no tokens.

import { createHash, timingSafeEqual } from 'node:crypto'
import { networkInterfaces } from 'node:os'
import type { Metadata } from '@grpc/grpc-js'
import type { AuthConfig, Role, TokenConfig } from '../config/schema.ts'
import { ADMIN_TOKEN } from './instance.ts'
import { fits } from './pattern.ts'
import { ServiceError } from './service-error.ts'

const RANK: Readonly<Record<Role, number>> = { check: 1, read: 2, admin: 3 }

const ADMIN_LINK = 'the admin link that the service printed at startup'

const PROXY_HEADERS = /^(?:forwarded|via|x-real-ip|x-forwarded-.+)$/

export class Caller {
  /** The name in the audit log. */
  readonly name: string
  readonly role: Role
  /** Patterns for the limiters that the caller may use. Undefined means all. */
  readonly limiters: readonly string[] | undefined
  /** Patterns for the limiters that the caller may declare. */
  readonly ownLimiters: readonly string[]

  constructor(name: string, role: Role, limiters?: readonly string[], ownLimiters: readonly string[] = []) {
    this.name = name
    this.role = role
    this.limiters = limiters
    this.ownLimiters = ownLimiters
  }

  /**
   * @param isOpen whether callers without a token may send this request, if the configuration has no tokens
   * @throws {ServiceError} `forbidden`
   */
  must(role: Role, _isOpen = false): void {
    if (RANK[this.role] >= RANK[role]) return
    throw new ServiceError(
      403,
      'forbidden',
      `${this.name} has the role ${this.role}; this requires the role ${role}`,
    )
  }

  may(limiter: string): boolean {
    return this.limiters === undefined || this.limiters.some((pattern) => fits(pattern, limiter))
  }

  /**
   * Rejects a limiter that the caller may not use, as if it didn't exist.
   *
   * @throws {ServiceError} `unknown_limiter`
   */
  mustReach(limiter: string): void {
    if (this.may(limiter)) return
    throw new ServiceError(404, 'unknown_limiter', `unknown limiter ${JSON.stringify(limiter)}`)
  }

  /** Whether the caller may declare the limits of limiters with this name. */
  declares(limiter: string): boolean {
    return this.ownLimiters.some((pattern) => fits(pattern, limiter))
  }
}

/** A program on this machine that sends no token, if the configuration has no tokens. */
class Stranger extends Caller {
  constructor() {
    super('anonymous', 'check', undefined, ['*'])
  }

  /** @throws {ServiceError} `unauthorized` */
  override must(role: Role, isOpen = false): void {
    if (isOpen || role === 'check') return
    throw new ServiceError(
      401,
      'unauthorized',
      `the configuration has no tokens, so this requires ${ADMIN_LINK}, or its token as Authorization: Bearer <token>. Set auth.tokens to define your own tokens`,
    )
  }
}

/** Authenticates callers by their tokens, in constant time. */
export class Gatekeeper {
  #tokens: readonly (readonly [digest: Buffer, caller: Caller])[] = []
  #anonymous: Caller | undefined
  #ownPatterns: readonly string[] = []
  #isOpen = false
  /** The address of this machine, as Envoy last reported it. */
  #ownAddress: string | undefined

  /** @param isLoopback whether only programs on this machine can connect */
  constructor(auth: AuthConfig | undefined, isLoopback: boolean) {
    this.reload(auth, isLoopback)
  }

  reload(auth: AuthConfig = {}, isLoopback: boolean): void {
    const { tokens = [], anonymous = false } = auth
    this.#isOpen = isLoopback && tokens.length === 0 && auth.anonymous === undefined
    if (this.#isOpen) {
      this.#tokens = [[digestOf(ADMIN_TOKEN), new Caller('admin-link', 'admin', undefined, ['*'])]]
      this.#anonymous = new Stranger()
    } else {
      this.#tokens = tokens.map((token) => [
        digestIn(token),
        new Caller(token.name, token.role, token.limiters, token.ownLimiters),
      ])
      this.#anonymous = anonymous === false ? undefined : new Caller('anonymous', anonymous)
    }
    const patterns = new Set(this.#tokens.flatMap(([, { ownLimiters }]) => ownLimiters))
    this.#ownPatterns = [...patterns].sort((a, b) => b.length - a.length || (a < b ? -1 : 1))
  }

  /** The `ownLimiters` patterns of all tokens, longest first. */
  get ownPatterns(): readonly string[] {
    return this.#ownPatterns
  }

  /** Whether the configuration has neither tokens nor `anonymous`. If so, the admin link works. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /**
   * Rejects requests that passed through a proxy, if there are no tokens.
   *
   * Otherwise, all of the proxy's clients would count as local.
   *
   * @param headers by name, in lower case
   * @throws {ServiceError} `proxy_without_tokens`
   */
  mustBeDirect(headers: Readonly<Record<string, unknown>>): void {
    if (!this.#isOpen) return
    for (const name in headers) {
      if (!PROXY_HEADERS.test(name)) continue
      throw new ServiceError(
        403,
        'proxy_without_tokens',
        `the request came through a proxy (it has the header ${name}), but the configuration has no tokens. Set auth.tokens, or set auth.anonymous to the role for all of the proxy's clients`,
      )
    }
  }

  /**
   * Does the same check as {@link mustBeDirect}, for gRPC. Accepts the address that Envoy adds to its own calls.
   *
   * @throws {ServiceError} `proxy_without_tokens`
   */
  mustBeEnvoy(metadata: Pick<Metadata, 'get' | 'getMap'>): void {
    if (!this.#isOpen) return
    const { 'x-forwarded-for': _, ...others } = metadata.getMap()
    const addresses = metadata.get('x-forwarded-for').map(String)
    const isForwarded = addresses.length > 1 || addresses.some((address) => !this.#isOwn(address))
    this.mustBeDirect({ ...others, ...(isForwarded && { 'x-forwarded-for': addresses }) })
  }

  #isOwn(address: string): boolean {
    if (address === this.#ownAddress) return true
    const own = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
    if (!own.some((each) => each.address === address)) return false
    this.#ownAddress = address
    return true
  }

  /** Returns the caller, or undefined if they may not read. Never throws. */
  readerOf(authorization: string | undefined): Caller | undefined {
    try {
      const caller = this.admit(authorization)
      caller.must('read', true)
      return caller
    } catch {
      return undefined
    }
  }

  /**
   * @param authorization the raw header
   * @throws {ServiceError} `unauthorized`
   */
  admit(authorization: string | undefined): Caller {
    if (authorization === undefined && this.#anonymous !== undefined) return this.#anonymous
    const secret = /^Bearer +([^\s]+) *$/i.exec(authorization ?? '')?.[1]
    if (secret === undefined) {
      throw new ServiceError(401, 'unauthorized', 'a token is required: Authorization: Bearer <token>')
    }
    const digest = digestOf(secret)
    let found: Caller | undefined
    // Compares all tokens, so that the time doesn't depend on which one matches.
    for (const [known, caller] of this.#tokens) if (timingSafeEqual(known, digest)) found ??= caller
    if (found === undefined) {
      const hint = this.#isOpen
        ? `; the configuration has no tokens, so use the one in ${ADMIN_LINK}. It changes at each start`
        : ''
      throw new ServiceError(401, 'unauthorized', `unknown token${hint}`)
    }
    return found
  }
}

function digestIn({ token, sha256 }: TokenConfig): Buffer {
  return sha256 === undefined ? digestOf(token ?? '') : Buffer.from(sha256, 'hex')
}

function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}
