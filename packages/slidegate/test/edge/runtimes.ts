import { createContext, runInContext } from 'node:vm'
import { EdgeVM } from '@edge-runtime/vm'
import type * as adapter from '../../src/adapters/fetch.ts'
import type * as calendar from '../../src/calendar.ts'
import type * as http from '../../src/http/index.ts'
import type * as core from '../../src/index.ts'
import { bundleOf, CALENDAR, FETCH, HTTP, SLIDEGATE } from './bundle.ts'

export interface Library {
  readonly core: typeof core
  readonly calendar: typeof calendar
  readonly http: typeof http
  readonly adapter: typeof adapter
}

const MODULES = { core: SLIDEGATE, calendar: CALENDAR, http: HTTP, adapter: FETCH }

export interface Runtime {
  readonly library: Library
  /** Runs an expression there. */
  evaluate(source: string): unknown
}

/** That of Vercel. */
export async function edgeRuntime(): Promise<Runtime> {
  return runtimeOf(new EdgeVM())
}

/** The same as Next.js has it: what Node has on `process`, and `setImmediate`, are there, and throw. */
export async function edgeRuntimeOfNext(): Promise<Runtime> {
  const unsupported = () => {
    throw new Error('A Node.js API is used which is not supported in the Edge Runtime')
  }
  const names = Object.entries(process).flatMap(([name, value]) =>
    typeof value === 'function' ? [name] : [],
  )
  const stubs = Object.fromEntries(names.map((name) => [name, unsupported]))
  return runtimeOf(
    new EdgeVM({
      extend: (context) => {
        const more = {
          process: { ...stubs, env: {} },
          setImmediate: unsupported,
          clearImmediate: unsupported,
        }
        return Object.assign(context, more)
      },
    }),
  )
}

/** One that gives modules of Node, or what stands for them. */
export async function runtimeWith(getBuiltinModule: (id: string) => unknown): Promise<Runtime> {
  return runtimeOf(
    new EdgeVM({ extend: (context) => Object.assign(context, { process: { getBuiltinModule } }) }),
  )
}

async function runtimeOf(edge: EdgeVM): Promise<Runtime> {
  const evaluate = (source: string): unknown => edge.evaluate(source)
  return { library: await libraryIn(evaluate), evaluate }
}

/** What the Web has, as far as the library may count on it, and nothing else. Timers are numbers. */
function webGlobals(): object {
  const timers = new Map<number, NodeJS.Timeout>()
  let lastTimer = 0
  return {
    setTimeout: (onTime: () => void, ms: number) => {
      const id = ++lastTimer
      const timer = setTimeout(() => {
        timers.delete(id)
        onTime()
      }, ms)
      timers.set(id, timer)
      return id
    },
    clearTimeout: (id: number | undefined) => {
      clearTimeout(timers.get(id!))
      timers.delete(id!)
    },
    crypto: globalThis.crypto,
    ...{ performance, queueMicrotask, atob, btoa, TextEncoder, TextDecoder },
    ...{ AbortController, AbortSignal, Headers, Request, Response, URL, URLSearchParams },
  }
}

/**
 * Nothing but the language and what the Web has.
 *
 * @param isRequested while it answers false, what Workers refuse before there is a request fails here, too: random bytes,
 * timers and clocks
 */
export async function bareRuntime(isRequested: () => boolean = () => true): Promise<Runtime> {
  const guarded = <Fn extends (...args: never[]) => unknown>(fn: Fn, self?: object): Fn =>
    ((...args: Parameters<Fn>) => {
      if (!isRequested()) throw new Error(`${fn.name} was called before there was a request`)
      return fn.apply(self, args)
    }) as Fn
  const web = webGlobals() as typeof globalThis
  const { performance, crypto } = globalThis
  const context = createContext({
    ...web,
    setTimeout: guarded(web.setTimeout),
    queueMicrotask: guarded(web.queueMicrotask),
    crypto: { getRandomValues: guarded(crypto.getRandomValues, crypto) },
    performance: { now: guarded(performance.now, performance), timeOrigin: performance.timeOrigin },
    guarded,
  })
  const evaluate = (source: string): unknown => runInContext(source, context)
  evaluate('Math.random = guarded(Math.random); Date.now = guarded(Date.now)')
  return { library: await libraryIn(evaluate), evaluate }
}

async function libraryIn(evaluate: (source: string) => unknown): Promise<Library> {
  const all = Object.entries(MODULES).map(
    ([name, path]) => `export * as ${name} from ${JSON.stringify(path)}`,
  )
  const { code } = await bundleOf(all.join('\n'), 'iife')
  return evaluate(`${code};bundle`) as Library
}
