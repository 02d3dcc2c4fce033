import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'

/** The parts of an API description that the tests use. */
export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: unknown
}

export interface Operation {
  readonly tags?: readonly string[]
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: unknown }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: unknown }>> }
  readonly responses: Readonly<Record<string, Response>>
}

interface Response {
  readonly content?: Readonly<Record<string, { readonly schema?: unknown }>>
}

export interface Given {
  readonly method: string
  /** The path, with the query. */
  readonly path: string
  readonly status: number
  /** The value of the Content-Type header. */
  readonly type: string | null
  readonly body: unknown
}

/** Tags of routes all of whose statuses must be described. */
const TOLD_IN_FULL = ['decisions', 'reservations', 'service']

/** Checks responses against the API description. */
export class Described {
  readonly #document: OpenApi
  readonly #ajv = new Ajv2020({ strict: false, validateFormats: false })
  readonly #schemas = new Map<string, ValidateFunction>()

  readonly #routes: readonly (readonly [pattern: RegExp, route: string])[]

  constructor(document: OpenApi) {
    this.#document = document
    this.#routes = Object.keys(document.paths).map((route) => {
      const pattern = route.replaceAll('.', '\\.').replaceAll(/\{[^}]+\}/g, '[^/]+')
      return [new RegExp(`^${pattern}$`), route]
    })
    this.#ajv.addSchema(document, 'api')
  }

  /** Returns the mistake in a response, or `undefined`. */
  mistakeIn({ method, path, status, type, body }: Given): string | undefined {
    const route = this.#routeOf(path)
    const verb = method.toLowerCase()
    const operation = route === undefined ? undefined : this.#document.paths[route]![verb]
    if (operation === undefined) {
      // Undescribed routes may only have the common responses.
      return [204, 400, 403, 404, 408, 413, 415, 421, 431].includes(status) ||
        verb === 'head' ||
        isOthers(path)
        ? undefined
        : `${method} ${path} is not described, but returns ${status}`
    }
    const response = operation.responses[status]
    const isInFull = operation.tags?.some((tag) => TOLD_IN_FULL.includes(tag)) === true
    if (response === undefined)
      return isInFull ? `${method} ${route} returns ${status}, which is not described` : undefined
    if (response.content === undefined || verb === 'head') return undefined
    const media = type?.split(';')[0] ?? ''
    if (response.content[media] === undefined) return `${method} ${route} returns ${status} as ${type}`
    const steps = ['paths', route!, verb, 'responses', `${status}`, 'content', media, 'schema']
    const isValid = this.#compiled(steps)
    if (isValid(body)) return undefined
    return `${method} ${route} returns ${status} with ${JSON.stringify(body)}: ${this.#ajv.errorsText(isValid.errors)}`
  }

  #routeOf(path: string): string | undefined {
    const [asked] = path.split('?')
    return this.#routes.find(([pattern]) => pattern.test(asked!))?.[1]
  }

  #compiled(steps: readonly string[]): ValidateFunction {
    const words = steps.map((step) => encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1')))
    const $ref = `api#/${words.join('/')}`
    let compiled = this.#schemas.get($ref)
    if (compiled === undefined) {
      compiled = this.#ajv.compile({ $ref })
      this.#schemas.set($ref, compiled)
    }
    return compiled
  }
}

/** Whether a described route covers this undescribed path. */
function isOthers(path: string): boolean {
  return path.startsWith('/v1/forward-auth') || path.startsWith('/v1/store')
}

let api: Described | undefined

/** Returns the API description. Cached, because creating it takes five times as long as creating a service. */
export function describedApi(app: { swagger(): unknown }): Described {
  api ??= new Described(app.swagger() as OpenApi)
  return api
}
