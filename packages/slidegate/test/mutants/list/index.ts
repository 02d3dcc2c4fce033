import type { Mutants } from '../mutant.ts'
import { apply } from './apply.ts'
import { ban } from './ban.ts'
import { beyond } from './beyond.ts'
import { distinctSketch } from './distinct-sketch.ts'
import { entryWindow } from './entry-window.ts'
import { fixedWindow } from './fixed-window.ts'
import { fixedWindowUsual } from './fixed-window-usual.ts'
import { general } from './general.ts'
import { main } from './main.ts'
import { override } from './override.ts'
import { packedWindow } from './packed-window.ts'
import { packedWindowUsual } from './packed-window-usual.ts'
import { prelude } from './prelude.ts'
import { slidingCounter } from './sliding-counter.ts'
import { slidingCounterUsual } from './sliding-counter-usual.ts'
import { streamWindow } from './stream-window.ts'
import { tokenBucket } from './token-bucket.ts'
import { tokenBucketUsual } from './token-bucket-usual.ts'
import { usual } from './usual.ts'
import { windowLog } from './window-log.ts'

/** Of every part of the script. */
export const MUTANTS: readonly Mutants[] = [
  ban,
  override,
  general,
  beyond,
  streamWindow,
  slidingCounter,
  entryWindow,
  distinctSketch,
  windowLog,
  packedWindowUsual,
  tokenBucketUsual,
  fixedWindowUsual,
  slidingCounterUsual,
  usual,
  packedWindow,
  fixedWindow,
  tokenBucket,
  main,
  apply,
  prelude,
]
