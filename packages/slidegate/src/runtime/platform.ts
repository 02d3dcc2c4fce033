// The differences between runtimes: Node, Deno and Bun have Node's built-in modules. Workers and browsers only have Web APIs.
//
// Don't import Node modules: the import would fail in Workers. Don't use Node globals: bundlers replace their bare
// names, and some runtimes throw an error. Don't draw random numbers, start timers or read clocks while a module loads
// or a limiter is created: Workers allow that only during a request.

import { hmacSha256 as portableHmac, sha256 as portableSha256 } from './sha256.ts'

const nodeProcess = builtin((get) => get('node:process'))
const nodeCrypto = builtin((get) => get('node:crypto'))
const AsyncResource = builtin((get) => get('node:async_hooks'))?.AsyncResource
const hrtime = nodeProcess?.hrtime
const hasTurns = nodeProcess !== undefined && globalThis.setImmediate !== undefined

function builtin<Module>(ask: (get: NodeJS.Process['getBuiltinModule']) => Module): Module | undefined {
  try {
    const { process } = globalThis as { readonly process?: Partial<NodeJS.Process> }
    return (process?.getBuiltinModule && ask(process.getBuiltinModule)) ?? undefined
  } catch {
    // This call throws in Next.js's edge runtime, and for `node:crypto` in a Node built without OpenSSL.
    return undefined
  }
}

/** Milliseconds on a monotonic clock. `hrtime` is Node's fastest clock. */
export const elapsedMs: () => number =
  hrtime === undefined
    ? () => performance.now()
    : () => {
        const [seconds, nanoseconds] = hrtime()
        return seconds * 1000 + nanoseconds / 1e6
      }

/** The SHA-256 of a text, in base64url. */
export const sha256: (text: string) => string =
  nodeCrypto?.hash === undefined
    ? (text) => base64url(portableSha256(utf8(text)))
    : (text) => nodeCrypto.hash('sha256', text, 'base64url')

/** Returns a function for the HMAC-SHA-256 (RFC 2104) of texts, in base64url. Copies the secret. */
export function hmacSha256(secret: Uint8Array): (text: string) => string {
  if (nodeCrypto?.createSecretKey === undefined) {
    const mac = portableHmac(secret)
    return (text) => base64url(mac(utf8(text)))
  }
  const key = nodeCrypto.createSecretKey(secret)
  return (text) => nodeCrypto.createHmac('sha256', key).update(text).digest('base64url')
}

/** Random bytes, in base64url. */
export function randomText(bytes: number): string {
  return base64url(crypto.getRandomValues(new Uint8Array(bytes)))
}

export function randomInt32(): number {
  return crypto.getRandomValues(new Int32Array(1))[0]!
}

export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

function base64url(bytes: Uint8Array): string {
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** Encodes text as UTF-8, then as base64url. */
export function toBase64url(text: string): string {
  return base64url(utf8(text))
}

/** Decodes base64url. Invalid input gives garbage or throws. */
export function fromBase64url(encoded: string): string {
  const binary = atob(encoded.replaceAll('-', '+').replaceAll('_', '/'))
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0))
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
}

/** An async context in which to start timers. Otherwise, a timer would retain a request's context. */
export interface AsyncOrigin {
  runInAsyncScope<Result>(run: () => Result): Result
}

/** Captures the caller's async context, if the runtime supports it. */
export function asyncOrigin(name: string): AsyncOrigin {
  return AsyncResource === undefined ? { runInAsyncScope: (run) => run() } : new AsyncResource(name)
}

export type Timer = ReturnType<typeof setTimeout>

/** Starts a timer that doesn't keep the process alive. In browsers and Workers, timers are numbers and never keep it alive. */
export function backgroundTimer(onTime: () => void, ms: number): Timer {
  const timer = setTimeout(onTime, ms)
  timer.unref?.()
  return timer
}

export type Turn = object | number

/** The warnings emitted so far. Bounded, because there can be any number of limiter names. */
const warned = new Set<string>()
const MAX_WARNINGS = 1000

/** Emits a process warning about a limiter once, if the runtime supports it. */
export function warn(code: string, limiter: string, message: string): void {
  const id = `${code} ${limiter}`
  if (warned.has(id) || warned.size === MAX_WARNINGS) return
  warned.add(id)
  nodeProcess?.emitWarning(`limiter "${limiter}": ${message}`, { type: 'SlidegateWarning', code })
}

/** Runs a function at the end of the current tick. `queueMicrotask` allocates more: a resource for async hooks. */
export function endOfTick(run: () => void): void {
  void Promise.resolve().then(run)
}

/** Runs a function in the next turn of the event loop. By then, data that has already arrived has been read. */
export function nextTurn(run: () => void): Turn {
  return hasTurns ? globalThis.setImmediate(run) : setTimeout(run, 0)
}

export function cancelTurn(turn: Turn | undefined): void {
  if (hasTurns) globalThis.clearImmediate(turn as NodeJS.Immediate | undefined)
  else clearTimeout(turn as Timer | undefined)
}
