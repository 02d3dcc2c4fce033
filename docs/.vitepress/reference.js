// Generates docs/reference from the library's docstrings: a page for each import path.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Application, ReflectionKind } from 'typedoc'
import { ModuleRouter } from 'typedoc-plugin-markdown'

const library = new URL('../../packages/slidegate/', import.meta.url)

/** @param {string} path within the library's package */
const file = (path) => fileURLToPath(new URL(path, library))

const { exports } = JSON.parse(readFileSync(file('package.json'), 'utf8'))
delete exports['./package.json']
/** Import paths by source file. */
const importPaths = new Map(
  Object.entries(exports).map(([path, { types }]) => [
    file(types.replace('./dist/', 'src/').replace('.d.ts', '.ts')),
    `slidegate${path.slice(1)}`,
  ]),
)

/** Names anchors after declarations, such as `Limiter.consume`, so that they stay the same. */
class NamedAnchors extends ModuleRouter {
  /** @type {Map<string, import('typedoc').Reflection>} */
  #places = new Map()

  /**
   * @override
   * @param {import('typedoc').Reflection} target
   * @param {import('typedoc').Reflection} pageTarget
   */
  buildAnchors(target, pageTarget) {
    const [page = ''] = this.fullUrls.get(pageTarget)?.split('#') ?? []
    // A function comes before its signatures.
    const place = this.#placeOf(target, page)
    super.buildAnchors(target, pageTarget)
    if (!this.anchors.has(target)) return
    this.fullUrls.set(target, place)
    this.anchors.set(target, place.slice(page.length + 1))
  }

  /**
   * @param {import('typedoc').Reflection} target
   * @param {string} page
   */
  #placeOf(target, page) {
    const name = `${page}#${nameOnPage(target)}`
    let place = name
    for (let i = 2; (this.#places.get(place) ?? target) !== target; i++) place = `${name}-${i}`
    this.#places.set(place, target)
    return place
  }
}

/** @param {import('typedoc').Reflection} reflection */
function nameOnPage(reflection) {
  const names = []
  /** @type {import('typedoc').Reflection | undefined} */
  let at = reflection
  for (; at !== undefined && !at.kindOf([ReflectionKind.Module, ReflectionKind.Project]); at = at.parent) {
    if (!at.kindOf(ReflectionKind.TypeLiteral) && !at.isSignature()) names.unshift(at.name)
  }
  return names.join('.').replace(/[^\w.]/g, '')
}

/** @type {import('typedoc').TypeDocOptions & import('typedoc-plugin-markdown').PluginOptions} */
const options = {
  entryPoints: [...importPaths.keys()],
  tsconfig: file('tsconfig.build.json'),
  plugin: ['typedoc-plugin-markdown'],
  router: 'named',
  out: fileURLToPath(new URL('../reference', import.meta.url)),
  entryFileName: 'README',
  readme: 'none',
  name: 'Reference',
  disableSources: true,
  groupOrder: ['Functions', 'Classes', 'Interfaces', 'Type Aliases', 'Variables'],
  excludeInternal: true,
  excludePrivate: true,
  hidePageHeader: true,
  hideBreadcrumbs: true,
  useCodeBlocks: true,
  expandObjects: true,
  parametersFormat: 'table',
  useCustomAnchors: true,

  excludeExternals: true,
  validation: { notDocumented: true },
  requiredToBeDocumented: ['Class', 'Interface', 'Function', 'TypeAlias', 'Variable'],
  // Other packages' objects, whose methods they document, and a hook of the language.
  intentionallyNotDocumented: [
    ...['eval', 'evalsha'].map((method) => `slidegate/redis.IoredisClient.${method}`),
    ...['eval', 'evalSha'].map((method) => `slidegate/redis.NodeRedisClient.${method}`),
    ...['GlideClient.customCommand', 'CommandClient.command'].map((method) => `slidegate/redis.${method}`),
    'slidegate/opentelemetry.MeasureOptions.store.__type.stats',
    ...['status', 'header', 'getHeader', 'removeHeader', 'send'].map(
      (name) => `slidegate/nest.HttpResponse.${name}`,
    ),
    ...['SlidegateError', 'StoreUnavailableError', 'WaitError'].map(
      (name) => `slidegate.${name}.[hasInstance]`,
    ),
    'slidegate/http.Denial.__type.answer',
  ],
  // Types that callers pass on without naming them: the members of `Op` and `Outcome`, and aliases of frameworks' types.
  intentionallyNotExported: [
    ...['ConsumeOp', 'PeekOp', 'ChargeOp', 'RefundOp', 'HoldOp', 'ListOp', 'ResetOp', 'SettleOp'],
    ...['ExplainOp', 'OverrideOp', 'OverridesOp', 'Any', 'LimitsFunction', 'HandlerResponse'],
    ...['Kind', 'FailureSettings', 'FailureReports', 'PLATFORM_HEADERS', 'HandlerGuards', 'Handler'],
    ...['Context', 'NodeRequest', 'NodeResponse', 'Next', 'Args', 'AnyResponse'],
  ],
}
const app = await Application.bootstrapWithPlugins(options)
app.renderer.defineRouter('named', NamedAnchors)
const entryPoints = app.getEntryPoints() ?? []
for (const point of entryPoints) {
  point.displayName = importPaths.get(point.sourceFile.fileName) ?? point.displayName
}
const project = app.converter.convert(entryPoints)
const reflections = project.getReflectionsByKind(ReflectionKind.All)
// Every error class overwrites `name`, which isn't worth a line.
for (const reflection of reflections) {
  if (reflection.isDeclaration() || reflection.isSignature()) delete reflection.overwrites
}

app.validate(project)
await app.generateOutputs(project)
process.exitCode = app.logger.hasErrors() || app.logger.hasWarnings() ? 1 : 0
