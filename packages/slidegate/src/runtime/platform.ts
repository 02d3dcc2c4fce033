// What runtimes differ in. Node, Deno and Bun have Node's built-in modules; Workers, edge functions and browsers have what the
// Web has. Nothing of Node is imported, since a module that does would not even load there. Nor are its globals used: bundlers
// bring stand-ins for their bare names along, and there are runtimes in which they are functions that throw.
//
// Nor is anything drawn, scheduled or read from a clock while a module loads or a limiter is made: Workers refuse it, or
// answer 0, until there is a request.

import { hmac } from '@noble/hashes/hmac.js'
import { sha256 as portableSha256 } from '@noble/hashes/sha2.js'

const nodeProcess = builtin((get) => get('node:process'))
const nodeCrypto = builtin((get) => get('node:crypto'))
const NodeBuffer = builtin((get) => get('node:buffer'))?.Buffer
const AsyncResource = builtin((get) => get('node:async_hooks'))?.AsyncResource
const hrtime = nodeProcess?.hrtime
const hasTurns = nodeProcess !== undefined && globalThis.setImmediate !== undefined

function builtin<Module>(ask: (get: NodeJS.Process['getBuiltinModule']) => Module): Module | undefined {
  try {
    const { process } = globalThis as { readonly process?: Partial<NodeJS.Process> }
    return (process?.getBuiltinModule && ask(process.getBuiltinModule)) ?? undefined
  } catch {
    // In the edge runtime of Next.js it throws, and so it does for `node:crypto` where Node was built without OpenSSL.
    return undefined
  }
}

/**
 * Milliseconds since some time in the past, whatever becomes of the wall clock. Of Node's clocks this is read in the
 * least time.
 */
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

/** Makes the HMAC-SHA-256 (RFC 2104) of texts, in base64url. The secret is copied. */
export function hmacSha256(secret: Uint8Array): (text: string) => string {
  if (nodeCrypto?.createSecretKey === undefined) {
    const begun = hmac.create(portableSha256, secret)
    return (text) => base64url(begun.clone().update(utf8(text)).digest())
  }
  const key = nodeCrypto.createSecretKey(secret)
  return (text) => nodeCrypto.createHmac('sha256', key).update(text).digest('base64url')
}

/** So many random bytes, in base64url. */
export function randomText(bytes: number): string {
  return base64url(crypto.getRandomValues(new Uint8Array(bytes)))
}

/** Any number of 32 bits. */
export function randomInt32(): number {
  return crypto.getRandomValues(new Int32Array(1))[0]!
}

export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

function base64url(bytes: Uint8Array): string {
  if (NodeBuffer !== undefined) {
    return NodeBuffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64url')
  }
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** A text in UTF-8, in base64url. */
export function toBase64url(text: string): string {
  return NodeBuffer === undefined ? base64url(utf8(text)) : NodeBuffer.from(text).toString('base64url')
}

/** The text again. Of what is none it is any text, or it throws. */
export function fromBase64url(encoded: string): string {
  if (NodeBuffer !== undefined) return NodeBuffer.from(encoded, 'base64url').toString()
  const binary = atob(encoded.replaceAll('-', '+').replaceAll('_', '/'))
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0))
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
}

/** Whose async context timers have: made on behalf of a request, they would keep that of the request. */
export interface AsyncOrigin {
  runInAsyncScope<Result>(run: () => Result): Result
}

/** That of whoever calls this. Where there is no such context there is nothing to keep. */
export function asyncOrigin(name: string): AsyncOrigin {
  return AsyncResource === undefined ? { runInAsyncScope: (run) => run() } : new AsyncResource(name)
}

export type Timer = ReturnType<typeof setTimeout>

/** A timer that does not keep the process alive. Those of browsers and Workers are numbers, and keep nothing alive. */
export function backgroundTimer(onTime: () => void, ms: number): Timer {
  const timer = setTimeout(onTime, ms)
  timer.unref?.()
  return timer
}

export type Turn = object | number

/** Whether other processes surely run the same program: this one is a worker of `node:cluster`. PM2 makes such workers, too. */
export function isClusterWorker(): boolean {
  const cluster = builtin((get) => get('node:cluster')) as { readonly isWorker?: boolean } | undefined
  return cluster?.isWorker === true
}

/** Emits a warning of the process, if the runtime has such warnings. */
export function warn(message: string, code: string): void {
  nodeProcess?.emitWarning(message, { type: 'SlidegateWarning', code })
}

/** Runs it at the end of the current tick. Makes less garbage than `queueMicrotask`, which makes a resource for async hooks. */
export function endOfTick(run: () => void): void {
  void Promise.resolve().then(run)
}

/** Runs it when what has arrived meanwhile has been read: in the next turn of the event loop. */
export function nextTurn(run: () => void): Turn {
  return hasTurns ? globalThis.setImmediate(run) : setTimeout(run, 0)
}

export function cancelTurn(turn: Turn | undefined): void {
  if (hasTurns) globalThis.clearImmediate(turn as NodeJS.Immediate | undefined)
  else clearTimeout(turn as Timer | undefined)
}
