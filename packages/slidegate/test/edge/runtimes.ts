import { createContext, runInContext } from 'node:vm'
import { EdgeVM } from '@edge-runtime/vm'
import type * as adapter from '../../src/adapters/fetch.ts'
import type * as calendar from '../../src/calendar.ts'
import type * as http from '../../src/http/index.ts'
import type * as core from '../../src/index.ts'
import { bundleOf } from './bundle.ts'

export interface Library {
  readonly core: typeof core
  readonly calendar: typeof calendar
  readonly http: typeof http
  readonly adapter: typeof adapter
}

const MODULES = {
  core: 'slidegate',
  calendar: 'slidegate/calendar',
  http: 'slidegate/http',
  adapter: 'slidegate/fetch',
}

export interface Runtime {
  readonly library: Library
  /** Evaluates an expression in the runtime. */
  evaluate(source: string): unknown
}

/** Starts Vercel's edge runtime. */
export async function edgeRuntime(): Promise<Runtime> {
  return runtimeOf(new EdgeVM())
}

/** Starts the edge runtime as in Next.js. `setImmediate` and the methods of `process` exist but throw. */
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

/** Starts an edge runtime with this `process.getBuiltinModule`. */
export async function runtimeWith(getBuiltinModule: (id: string) => unknown): Promise<Runtime> {
  return runtimeOf(
    new EdgeVM({ extend: (context) => Object.assign(context, { process: { getBuiltinModule } }) }),
  )
}

async function runtimeOf(edge: EdgeVM): Promise<Runtime> {
  const evaluate = (source: string): unknown => edge.evaluate(source)
  return { library: await libraryIn(evaluate), evaluate }
}

/** Returns the Web globals that the library may use, and nothing else. Timers are numbers. */
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
 * Creates a runtime with only the language and Web globals.
 *
 * @param isRequested while it returns false, random bytes, timers and clocks throw, as in Workers before a request
 */
export async function bareRuntime(isRequested: () => boolean = () => true): Promise<Runtime> {
  const guarded = <Fn extends (...args: never[]) => unknown>(fn: Fn, self?: object): Fn =>
    ((...args: Parameters<Fn>) => {
      if (!isRequested()) throw new Error(`${fn.name} was called before the first request`)
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
