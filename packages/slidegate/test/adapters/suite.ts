import type { HandlerArguments } from '../../src/http/index.ts'
import { addressSuite } from './suite/addresses.ts'
import { bodySuite } from './suite/bodies.ts'
import { conversationSuite } from './suite/conversation.ts'
import { countingSuite } from './suite/counting.ts'
import { deniedSuite } from './suite/denied.ts'
import { errorSuite } from './suite/errors.ts'
import type { AdapterUnderTest } from './suite/fixture.ts'
import { listSuite } from './suite/lists.ts'
import { loadSuite } from './suite/load.ts'
import { optionSuite } from './suite/options.ts'
import { outageSuite } from './suite/outages.ts'
import { setupWarningSuite } from './suite/setup-warnings.ts'
import { verdictSuite } from './suite/verdicts.ts'

export type { AdapterUnderTest, Server } from './suite/fixture.ts'

/** Tests the guarantees of `rateLimit` in every framework. */
export function adapterSuite<Args extends HandlerArguments>(adapter: AdapterUnderTest<Args>): void {
  verdictSuite(adapter)
  optionSuite(adapter)
  errorSuite(adapter)
  addressSuite(adapter)
  outageSuite(adapter)
  bodySuite(adapter)
  listSuite(adapter)
  countingSuite(adapter)
  deniedSuite(adapter)
  conversationSuite(adapter)
  loadSuite(adapter)
  setupWarningSuite(adapter)
}
