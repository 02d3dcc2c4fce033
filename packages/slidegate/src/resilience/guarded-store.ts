import { invalidOption, show } from '../errors.ts'
import { Announcer } from '../events.ts'
import { isClusterWorker, warn } from '../runtime/platform.ts'
import { type MemoryStore, memoryStore } from '../stores/memory/memory.ts'
import type { Store } from '../stores/store.ts'
import { checkFailureOptions, type FailureOptions } from './failure-options.ts'
import { withFailurePolicy } from './failure-policy.ts'

/** What is asked, and what becomes of it when it fails. */
interface StoreOptions extends FailureOptions {
  readonly store?: Store
}

/** Keys that are held at most while this process decides without its store. */
const MAX_LOCAL_KEYS = 100_000

/**
 * The store of whoever asks one, with the failure policy that the options say, and who tells of it.
 *
 * @param name of who asks
 * @throws {SlidegateError} `invalid_option`
 */
export function guardedStore(
  name: string,
  options: StoreOptions,
): { readonly store: Store; readonly announcer: Announcer } {
  const { store = memoryStore() } = options
  if (typeof store !== 'object' || typeof store?.apply !== 'function') {
    throw invalidOption(`the store is ${show(store)}; use memoryStore() or redisStore(client)`, store)
  }
  const { logger, ...policy } = checkFailureOptions(options)
  if (store.applySync === undefined) warnOfShare(options)
  const announcer = new Announcer(name, logger)
  return { store: withFailurePolicy(store, { ...policy, announcer, createLocalStore }), announcer }
}

let isWarned = false

/** Once. Only workers of `node:cluster` can detect that there are others. */
function warnOfShare({ onStoreError, instances }: StoreOptions): void {
  if (isWarned || onStoreError !== 'local' || instances !== undefined || !isClusterWorker()) return
  isWarned = true
  warn(
    "onStoreError is 'local' without instances: in an outage each process admits the whole limit. " +
      'Set instances to their number. See docs/failures.md.',
    'SLIDEGATE_LOCAL_INSTANCES',
  )
}

function createLocalStore(): MemoryStore {
  return memoryStore({ maxKeys: MAX_LOCAL_KEYS, onFull: 'deny' })
}
