import type { Role } from '../config/schema.ts'
import type { Caller } from '../service/gatekeeper.ts'
import type { App } from './app.ts'
import type { Context } from './context.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What a caller needs for this route. Left out: nothing, and nobody is asked who he is. */
    role?: Role
  }
  interface FastifyRequest {
    /** Who asks. Only on routes with a role. */
    caller: Caller
  }
}

/** Lets nobody on to a route who may not. */
export function authenticate(app: App, { gatekeeper }: Context): void {
  app.decorateRequest('caller')
  app.addHook('onRequest', (request, _reply, done) => {
    const { role } = request.routeOptions.config
    if (role !== undefined) {
      request.caller = gatekeeper.admit(request.headers.authorization)
      request.caller.must(role)
    }
    done()
  })
}
