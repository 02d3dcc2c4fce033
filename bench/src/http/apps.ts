import type { Policy } from '../peers/peer.ts'
import type { App } from './app.ts'

export type Framework = 'express' | 'fastify' | 'hono' | 'nest' | 'node'

type Apps = Readonly<Record<string, App>>

/** Loads a framework only when it's needed. Each app runs in its own process. */
const APPS: Readonly<Record<Framework, (policy: Policy) => Promise<Apps>>> = {
  express: async (policy) => (await import('./apps/express.ts')).expressApps(policy),
  fastify: async (policy) => (await import('./apps/fastify.ts')).fastifyApps(policy),
  hono: async (policy) => (await import('./apps/hono.ts')).honoApps(policy),
  nest: async (policy) => (await import('./apps/nest.ts')).nestApps(policy),
  node: async (policy) => (await import('./apps/node.ts')).nodeApps(policy),
}

export async function appOf(framework: Framework, limiter: string, policy: Policy): Promise<App> {
  const app = (await APPS[framework](policy))[limiter]
  if (app === undefined) throw new Error(`No ${framework} app uses ${limiter}`)
  return app
}
