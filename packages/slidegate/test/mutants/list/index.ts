import type { Mutants } from '../mutant.ts'
import { ban } from './ban.ts'
import { consume } from './consume.ts'
import { distinctSketch } from './distinct-sketch.ts'
import { driver } from './driver.ts'
import { entryWindow } from './entry-window.ts'
import { fixedWindow } from './fixed-window.ts'
import { operations } from './operations.ts'
import { override } from './override.ts'
import { packedWindow } from './packed-window.ts'
import { prelude } from './prelude.ts'
import { rare } from './rare.ts'
import { slidingCounter } from './sliding-counter.ts'
import { streamWindow } from './stream-window.ts'
import { tokenBucket } from './token-bucket.ts'

/** Mutants of all parts of the script. */
export const MUTANTS: readonly Mutants[] = [
  ban,
  override,
  rare,
  ...operations,
  streamWindow,
  slidingCounter,
  entryWindow,
  distinctSketch,
  packedWindow,
  fixedWindow,
  tokenBucket,
  driver,
  consume,
  prelude,
]
